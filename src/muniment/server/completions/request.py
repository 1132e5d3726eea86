"""What a completion is asked with: OpenAI's shape, and a few fields of ours."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from muniment.domain import checks
from muniment.domain.conversation import MAX_MESSAGE_BYTES
from muniment.server.problems import Problem, invalid

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_INSTRUCTIONS = ("system", "developer")
_MOST_MESSAGES = 2_000


class ChatMessage(BaseModel):
    """A message in OpenAI's shape; fields that are not named here go to the model as they are."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        """The text of the content; parts that are not text left out."""
        if isinstance(self.content, list):
            parts = [part.get("text") for part in self.content if part.get("type") == "text"]
            return "\n".join(part for part in parts if isinstance(part, str))
        return self.content or ""


class CompletionRequest(BaseModel):
    """OpenAI's request. The last message is the question; `system` and `developer` messages lead
    the prompt; other earlier ones are ignored, since the service holds the history. `model` and
    `user` are ignored. Fields that are not named here go to the model as they are."""

    model_config = ConfigDict(extra="allow")
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=_MOST_MESSAGES)]
    model: str | None = None
    stream: bool | None = None
    n: Literal[1] | None = None
    user: str | None = None
    session_id: Identifier | None = None
    project_id: Identifier | None = None
    memory: Literal["off", "full"] | None = None

    def question(self) -> str:
        """The text of the last message; Problem 422 where there is none that can be kept."""
        last = self.messages[-1]
        if last.role != "user":
            raise invalid("messages", "the last must be of the role user")
        try:
            text = checks.storable_text("messages", last.text)
        except ValueError as error:
            field, _, problem = str(error).partition(": ")
            raise invalid(field, f"the last {problem}") from None
        if len(text.encode()) > MAX_MESSAGE_BYTES:
            raise invalid("messages", f"the last must have at most {MAX_MESSAGE_BYTES} bytes")
        return text

    def asked(self) -> dict[str, Any]:
        """The last message as the model gets it."""
        return self.messages[-1].model_dump(exclude_unset=True)

    def instructions(self) -> list[dict[str, Any]]:
        """The messages that lead the prompt."""
        leading = [each for each in self.messages if each.role in _INSTRUCTIONS]
        return [each.model_dump(exclude_unset=True) for each in leading]

    def options(self) -> dict[str, Any]:
        """What goes to the model as it is."""
        return dict(self.model_extra or {})

    def fingerprint(self, kind: str, session_id: str | None) -> str:
        """The same for the same question to the same session, and for no other."""
        whole = [kind, session_id, self.model_dump(exclude_unset=True, exclude={"session_id"})]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def chosen_session(body: str | None, header: str | None) -> str | None:
    """The session that body or header names; Problem 422 where they differ."""
    if body is not None and header is not None and body != header:
        raise invalid("session_id", "differs from the header Muniment-Session-Id")
    given = body if body is not None else header
    if given is None:
        return None
    try:
        return checks.identifier("session_id", given)
    except ValueError as error:
        raise invalid(*str(error).split(": ", 1)) from None


def checked_key(key: str | None) -> str | None:
    """An idempotency key: 1 to 255 visible ASCII characters."""
    if key is None:
        return None
    if not 1 <= len(key) <= 255 or not key.isascii() or not key.isprintable():
        raise Problem(422, "invalid", "Idempotency-Key: must be 1 to 255 visible characters")
    return key
