"""The lines of a file to import, each within its limit, and a quick parser of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from muniment.domain.strict_json import read_object
from muniment.errors import InvalidEntryError
from muniment.stores.transfer import Intake
from muniment.stores.transfer_talks import LONGEST_MESSAGE_LINE

Parser = Callable[[bytes], dict[str, Any]]


def refused(number: int, problem: str) -> InvalidEntryError:
    """What is wrong with a line."""
    return InvalidEntryError(f"line {number}: {problem}")


def numbered_lines(stream: BinaryIO, taking: Intake) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers, from 1; InvalidEntryError where one or all are too long."""
    most = LONGEST_MESSAGE_LINE if taking.conversations else taking.line_bytes
    left, number = taking.max_bytes, 0
    while line := stream.readline(most + 2):
        number += 1
        left -= len(line)
        if not isinstance(line, bytes):
            raise InvalidEntryError("import: must be a binary stream")
        if len(line) > most and len(line.rstrip(b"\r\n")) > most:
            raise refused(number, f"must have at most {most} bytes")
        if left < 0:
            raise refused(number, f"the file has more than {taking.max_bytes} bytes")
        yield number, line


def quick_parser() -> Parser:
    """What `read_object` does in half the time, for files that are worth loading it for.

    A number that is too large for a float is left to the check of its field.
    """
    from pydantic_core import from_json

    def quickly_parsed(line: bytes) -> dict[str, Any]:
        if b"\\" in line:
            return read_object(line)
        try:
            value = from_json(line, allow_inf_nan=False, cache_strings="keys")
        except ValueError:
            return read_object(line)
        # No quotation mark but those of the names and texts seen: no name came twice, and nothing
        # is nested that could hold a name or a text.
        if type(value) is dict and line.count(b'"') == 2 * (
            len(value) + list(map(type, value.values())).count(str)
        ):
            return value
        return read_object(line)

    return quickly_parsed
