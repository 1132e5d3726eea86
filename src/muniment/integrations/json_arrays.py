"""The items of a JSON array in a file, one at a time: memory does not grow with the file."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

from muniment.errors import InvalidEntryError

_FIRST_READ = 1 << 16
_BLANKS = " \t\r\n"
# Where an item is cut by the end of what was read, the decoder stops this close to it.
_CUT = 16


def array_items(
    stream: BinaryIO, *, most_characters: int, most_items: int, item: str = "item"
) -> Iterator[Any]:
    """Each item of the array that is the whole of `stream`, in UTF-8.

    InvalidEntryError names the number of the `item` (from 1) that cannot be read, or is longer
    than `most_characters`, and quotes nothing.
    """
    text = _Text(stream, most_characters)
    if text.next() != "[":
        raise InvalidEntryError("file: must be a JSON array")
    text.skip()
    number = 0
    while text.next() != "]":
        number += 1
        if number > most_items:
            raise InvalidEntryError(f"file: must have at most {most_items} {item}s")
        yield text.value(f"{item} {number}")
        if text.next() == ",":
            text.skip()
            if text.next() == "]":
                _malformed(f"{item} {number + 1}")
        elif text.next() != "]":
            _malformed(f"{item} {number}")
    text.skip()
    if text.next():
        raise InvalidEntryError("file: something follows the JSON array")


class _Text:
    """What was read and not used yet; read on in growing pieces, so that retries stay few."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream = stream
        self._most = most
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("strict").decode
        self._decoder = json.JSONDecoder(parse_constant=_no_number)
        self._held = ""
        self._at = 0
        self._ended = False

    def next(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            held = self._held
            while self._at < len(held) and held[self._at] in _BLANKS:
                self._at += 1
            if self._at < len(held):
                return held[self._at]
            if self._ended:
                return ""
            self._read(_FIRST_READ)

    def skip(self) -> None:
        """Past the character that `next` gave."""
        self._at += 1

    def value(self, name: str) -> Any:
        """The JSON value that begins here."""
        while True:
            try:
                value, end = self._decoder.raw_decode(self._held, self._at)
            except RecursionError:
                raise InvalidEntryError(f"{name}: is nested too deep") from None
            except json.JSONDecodeError as error:
                if self._ended or not self._cut(error):
                    _malformed(name)
            except ValueError:  # a number that no number can hold
                _malformed(name)
            else:
                if end < len(self._held) or self._ended:
                    self._at = end
                    return value
            self._more(name)

    def _more(self, name: str) -> None:
        if len(self._held) - self._at > self._most:
            raise InvalidEntryError(f"{name}: must have at most {self._most} characters")
        self._read(max(_FIRST_READ, len(self._held) - self._at))

    def _cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the end of what was read may be to blame."""
        return error.msg.startswith("Unterminated") or error.pos >= len(self._held) - _CUT

    def _read(self, size: int) -> None:
        data = self._stream.read(size)
        self._ended = not data
        try:
            self._held = self._held[self._at :] + self._decode(data, not data)
        except UnicodeDecodeError:
            raise InvalidEntryError("file: must be UTF-8 text") from None
        self._at = 0


def _no_number(_: str) -> NoReturn:
    raise ValueError


def _malformed(name: str) -> NoReturn:
    raise InvalidEntryError(f"{name}: is not JSON, or is cut off")
