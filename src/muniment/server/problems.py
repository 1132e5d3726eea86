"""Errors as RFC 9457 problem documents: what is wrong with which field, never a value."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Scope

from muniment.errors import (
    InvalidEntryError,
    MemoryScopeError,
    MemoryStoreError,
    MunimentError,
    NotFoundError,
    QuotaExceededError,
    ScopeError,
)
from muniment.server.bodies import UnreadableBody

MEDIA_TYPE = "application/problem+json"
BUSY_SECONDS = 1
_MOST_ERRORS = 20
_OPENAI_PATH = "/completions"  # where OpenAI's clients look for `error`, and show nothing else
_SAID_BY_THE_DOMAIN = re.compile(r"[a-z_]{1,40}: (keys )?must [ -~]{1,200}")  # these quote no value
_log = logging.getLogger("muniment.server")


class ProblemField(BaseModel):
    """One field of a request that cannot be used."""

    field: str
    problem: str


class ProblemError(BaseModel):
    """The detail once more, where OpenAI's clients look for it; completions have it."""

    message: str
    type: str
    code: int


class ProblemDocument(BaseModel):
    """RFC 9457, with the request's id for whoever reads the logs."""

    model_config = ConfigDict(extra="forbid")
    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[ProblemField] | None = None
    error: ProblemError | None = None


class Problem(Exception):
    """An answer that is an error: `code` names its kind, `detail` says what to do about it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, retry_after))

    def document(self, request_id: str) -> dict[str, Any]:
        """The body of the answer."""
        body: dict[str, Any] = {
            "type": f"urn:muniment:problem:{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
        }
        return body if self.errors is None else {**body, "errors": self.errors}

    def openai_error(self) -> dict[str, Any]:
        """The same in the shape that OpenAI's clients read."""
        return {"message": self.detail, "type": self.code, "code": self.status}

    def response(self, scope: Scope) -> Response:
        """The answer to the request of `scope`."""
        document = self.document(request_id(scope))
        if str(scope.get("path", "")).endswith(_OPENAI_PATH):
            document["error"] = self.openai_error()
        body = json.dumps(document).encode()
        return Response(body, self.status, self.headers, media_type=MEDIA_TYPE)


def request_id(scope: Scope) -> str:
    """The id that this request was given."""
    return str(scope.get("state", {}).get("request_id", ""))


def not_found(what: str = "session") -> Problem:
    """What is not there and what is another's are one answer."""
    return Problem(404, "not-found", f"no such {what}")


def invalid(field: str, problem: str) -> Problem:
    """One field of the request cannot be used."""
    return Problem(
        422, "invalid", f"{field}: {problem}", errors=[{"field": field, "problem": problem}]
    )


def problem_of(error: Exception) -> Problem:
    """The answer that an error of the package stands for; 500 for any that is not expected."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, NotFoundError):
        return not_found("memory")
    if isinstance(error, QuotaExceededError):
        return Problem(507, "quota", "the quota is full; nothing was changed")
    if isinstance(error, (InvalidEntryError, ScopeError, MemoryScopeError)):
        return _of_field(str(error))
    if isinstance(error, MemoryStoreError):
        return Problem(503, "store", "the store cannot answer now", retry_after=BUSY_SECONDS)
    if type(error) is ValueError and _SAID_BY_THE_DOMAIN.fullmatch(str(error)):
        return _of_field(str(error))
    return Problem(500, "internal", "the request could not be answered")


def _of_field(message: str) -> Problem:
    field, colon, problem = message.partition(": ")
    return invalid(field, problem) if colon else invalid("request", message)


def install_problems(app: FastAPI) -> None:
    """Answer every error of `app` as a problem document."""
    app.add_exception_handler(Problem, _answer)
    app.add_exception_handler(MunimentError, _answer)
    app.add_exception_handler(ValueError, _answer)
    app.add_exception_handler(RequestValidationError, _unfit)
    app.add_exception_handler(HTTPException, _by_status)


async def _answer(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    if problem is not error and problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        report(error, request_id(request.scope))
    return problem.response(request.scope)


async def _unfit(request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    errors = [{"field": _path(each["loc"]), "problem": _said(each)} for each in found]
    first = errors[0] if errors else {"field": "request", "problem": "cannot be read"}
    detail = f"{first['field']}: {first['problem']}"
    return Problem(422, "invalid", detail, errors=errors[:_MOST_ERRORS]).response(request.scope)


def _path(location: tuple[str | int, ...]) -> str:
    """The field as it is declared; what a request calls a field of its own stays unsaid."""
    parts = [str(part) for part in location[location[:1] in _PLACES :]]
    known = [part if part.isidentifier() or part.isdigit() else "..." for part in parts]
    return ".".join(known)[:200] or "body"


def _said(error: Mapping[str, Any]) -> str:
    kind = str(error["type"])
    if kind == "extra_forbidden":
        return "is not a field here"
    if kind in ("value_error", "assertion_error"):
        return str(error["msg"]).removeprefix("Value error, ")
    if kind in _PROBLEMS:
        return _PROBLEMS[kind]
    if kind in ("enum", "literal_error") or kind.endswith("_type"):
        return str(error["msg"])
    context = {key: value for key, value in error.get("ctx", {}).items() if key in _RANGES}
    limits = [_RANGES[key].format(value) for key, value in context.items()]
    return f"must {' and '.join(limits)}" if limits else "is out of range or malformed"


_PLACES = (("body",), ("query",), ("path",), ("header",))
_PROBLEMS = {
    "missing": "is missing",
    "json_invalid": "must be JSON",
    "model_attributes_type": "must be a JSON object, sent with Content-Type: application/json",
}
_RANGES = {
    "ge": "be at least {}",
    "gt": "be more than {}",
    "le": "be at most {}",
    "lt": "be less than {}",
    "min_length": "have a length of at least {}",
    "max_length": "have a length of at most {}",
}


async def _by_status(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    if isinstance(error, UnreadableBody):
        return invalid("body", error.detail).response(request.scope)
    if status == HTTPStatus.BAD_REQUEST:  # the framework's answer to a body that it cannot read
        return invalid("body", "must be JSON in UTF-8").response(request.scope)
    phrase = HTTPStatus(status).phrase
    code = phrase.lower().replace(" ", "-")
    return Problem(status, code, phrase.lower(), headers=headers).response(request.scope)


def report(error: BaseException, identifier: str) -> None:
    """Log an unexpected error: its class and where it arose, never what it says."""
    places: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}")
        trace = trace.tb_next
    _log.error(
        "%s at %s",
        type(error).__name__,
        " < ".join(reversed(places[-8:])),
        extra={"request_id": identifier},
    )
