"""Any endpoint that speaks OpenAI's chat completions protocol (extra `openai`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.errors import MunimentError, StructuredOutputUnsupported
from muniment.extras import missing_extra
from muniment.models.refusal import read_reply, refuses
from muniment.ports import Reply

try:
    from openai import APIStatusError, AsyncOpenAI
    from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam
    from openai.types.shared_params import ResponseFormatJSONSchema
    from openai.types.shared_params.response_format_json_schema import JSONSchema
except ModuleNotFoundError as error:
    raise missing_extra("openai") from error


class OpenAIModel:
    """`model` at the endpoint of `client`; `options` go into every request's body as they are
    (`{"temperature": 0}`, `{"max_tokens": 800}`).

    Errors are those of the `openai` client, StructuredOutputUnsupported where the provider
    refuses or ignores the response format, and MunimentError for a reply without a choice.
    """

    def __init__(
        self, client: AsyncOpenAI, *, model: str, options: Mapping[str, Any] | None = None
    ) -> None:
        self.model_name = model
        self._client = client
        self._options = dict(options or {})

    async def generate_text(self, *, system: str, user: str) -> str:
        """The reply's text; empty where the model said nothing."""
        reply = await self._client.chat.completions.create(
            model=self.model_name, messages=_prompt(system, user), extra_body=self._options
        )
        return _message(reply).content or ""

    async def generate_structured(self, *, schema: type[Reply], system: str, user: str) -> Reply:
        """The reply as `schema`, whose JSON schema must be strict."""
        try:
            reply = await self._client.chat.completions.create(
                model=self.model_name,
                messages=_prompt(system, user),
                response_format=_response_format(schema),
                extra_body=self._options,
            )
        except APIStatusError as error:
            if refuses(error):
                raise StructuredOutputUnsupported("the provider refuses the schema") from None
            raise
        return read_reply(schema, _message(reply).content or "")


def _prompt(system: str, user: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _response_format(schema: type[Reply]) -> ResponseFormatJSONSchema:
    described: JSONSchema = {
        "name": schema.__name__,
        "schema": schema.model_json_schema(),
        "strict": True,
    }
    return {"type": "json_schema", "json_schema": described}


def _message(reply: object) -> ChatCompletionMessage:
    # Rubbish that parses as JSON, or as bare text, gets through the client without its fields.
    choices = getattr(reply, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    if not isinstance(message, ChatCompletionMessage):
        raise MunimentError("the model's reply holds no choice")
    return message
