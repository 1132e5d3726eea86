"""Exit codes, and which error becomes which.

0 done; 1 it could not be done (not there, not confirmed, the store failed); 2 bad input, and
then nothing changed. Each failure is one line on standard error.
"""

from __future__ import annotations

from muniment.errors import (
    InvalidEntryError,
    MemoryConfigurationError,
    MemoryScopeError,
    ScopeError,
)

DONE = 0
FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

EXIT_CODES = "Exit codes: 0 done, 1 it could not be done, 2 bad input (nothing changed)."

_BAD_INPUT = (
    InvalidEntryError,
    MemoryConfigurationError,
    MemoryScopeError,
    ScopeError,
    ValueError,
)


_TYPED = {
    "tenant_id": "--tenant",
    "tenant": "--tenant",
    "user_id": "--user",
    "subject": "--user",
    "agent": "--agent",
    "session_id": "--session",
    "session": "--session",
    "project_id": "--project",
    "content": "TEXT",
    "title": "TITLE",
    "file": "FILE",
    "cursor": "--cursor",
    "period": "--period",
    "receipt": "--receipt",
    "url": "--url or MUNIMENT_DATABASE_URL",
}


class BadInput(Exception):
    """What was typed cannot be used; the message is one line."""


class Failed(Exception):
    """It could not be done; the message is one line."""


def exit_code(error: BaseException) -> int:
    """The exit code that `error` stands for."""
    return BAD_INPUT if isinstance(error, (BadInput, *_BAD_INPUT)) else FAILED


def one_line(error: BaseException) -> str:
    """The error's message on one line; its class name where it has none."""
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


def as_typed(message: str) -> str:
    """`message` about a field, with the name under which it was typed."""
    field, colon, problem = message.partition(": ")
    return f"{_TYPED[field]}: {problem}" if colon and field in _TYPED else message
