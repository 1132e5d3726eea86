"""A file of conversations from elsewhere: which form it has, and what it holds."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, cast

from muniment.errors import InvalidEntryError
from muniment.integrations import chatgpt, claude, message_lines
from muniment.integrations.exported_chats import (
    MAX_CHAT_CHARACTERS,
    MAX_CHATS,
    ExportedChat,
    mapping_of,
)
from muniment.integrations.json_arrays import array_items

CHAT_FILE = "conversations.json"
MAX_FILE_BYTES = 4 << 30
_PEEK = 1024


class ChatFormat(StrEnum):
    """What a file of conversations came from."""

    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    JSONL = "jsonl"


def read_chats(
    stream: BinaryIO, *, form: ChatFormat | None = None, session: str | None = None
) -> Iterator[ExportedChat]:
    """The conversations of a seekable `stream`, one at a time; its form is found out by itself.

    `session` is that of messages in JSON Lines that name none. InvalidEntryError names the
    conversation or line that cannot be read, and quotes nothing.
    """
    start = stream.read(_PEEK).removeprefix(b"\xef\xbb\xbf").lstrip()
    stream.seek(0)
    if not start:
        raise InvalidEntryError("file: is empty")
    if form is ChatFormat.JSONL or (form is None and start.startswith(b"{")):
        yield from message_lines.chats_of(stream, session=session)
        return
    read: Callable[[Mapping[str, Any], str], ExportedChat] | None = _READERS.get(form)
    records = array_items(
        stream, most_characters=MAX_CHAT_CHARACTERS, most_items=MAX_CHATS, item="conversation"
    )
    for number, item in enumerate(records, start=1):
        name = f"conversation {number}"
        record = mapping_of(item, name)
        read = read or _reader_of(record, name)
        yield read(record, name)


@contextmanager
def opened_chats(path: Path) -> Iterator[BinaryIO]:
    """The chats of a file, or of the export's archive as it was downloaded.

    InvalidEntryError for an archive without them, and for more than 4 GiB; OSError where the
    file cannot be read.
    """
    with path.open("rb") as stream:
        if not zipfile.is_zipfile(stream):
            stream.seek(0)
            yield stream
            return
        try:
            with zipfile.ZipFile(stream) as archive, archive.open(_member(archive)) as inner:
                yield cast(BinaryIO, inner)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            raise InvalidEntryError("file: the archive is damaged or locked") from None


def _member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    for entry in archive.infolist():
        if Path(entry.filename).name == CHAT_FILE:
            if entry.file_size > MAX_FILE_BYTES:
                raise InvalidEntryError(f"file: {CHAT_FILE} must have at most 4 GiB")
            return entry
    raise InvalidEntryError(f"file: the archive holds no {CHAT_FILE}")


def _chatgpt(record: Mapping[str, Any], name: str) -> ExportedChat:
    return chatgpt.chat_of(_shaped(chatgpt.is_conversation, record, name), name)


def _claude(record: Mapping[str, Any], name: str) -> ExportedChat:
    return claude.chat_of(_shaped(claude.is_conversation, record, name), name)


def _shaped(
    fits: Callable[[Mapping[str, Any]], bool], record: Mapping[str, Any], name: str
) -> Mapping[str, Any]:
    if not fits(record):
        raise InvalidEntryError(f"{name}: does not have the shape of this export")
    return record


def _reader_of(
    record: Mapping[str, Any], name: str
) -> Callable[[Mapping[str, Any], str], ExportedChat]:
    if chatgpt.is_conversation(record):
        return _chatgpt
    if claude.is_conversation(record):
        return _claude
    raise InvalidEntryError(f"{name}: is of no known export; there are {', '.join(ChatFormat)}")


_READERS: dict[ChatFormat | None, Callable[[Mapping[str, Any], str], ExportedChat]] = {
    ChatFormat.CHATGPT: _chatgpt,
    ChatFormat.CLAUDE: _claude,
}
