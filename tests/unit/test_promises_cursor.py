"""A cursor is taken back exactly as it was given out."""

from __future__ import annotations

import base64
import json
import zlib

import pytest

from muniment.domain.cursor import decode_cursor, encode_cursor


def test_a_cursor_gives_back_what_it_names() -> None:
    assert decode_cursor("page", encode_cursor("page", 7, "monday")) == (7, "monday")


def test_every_altered_character_of_a_cursor_is_noticed() -> None:
    cursor = encode_cursor("page", 7, "monday")
    for place, char in enumerate(cursor):
        altered = cursor[:place] + ("B" if char == "A" else "A") + cursor[place + 1 :]
        with pytest.raises(ValueError, match="unknown or altered"):
            decode_cursor("page", altered)


def test_a_body_under_the_checksum_of_another_is_an_error() -> None:
    checksum = zlib.crc32(b'["page",7]').to_bytes(4, "big")
    forged = base64.urlsafe_b64encode(checksum + json.dumps(["page", 8]).encode()).decode()
    with pytest.raises(ValueError, match="unknown or altered"):
        decode_cursor("page", forged.rstrip("="))


def test_a_cursor_of_another_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="unknown or altered"):
        decode_cursor("page", encode_cursor("conversation", "monday"))


def test_a_cursor_is_spelled_in_one_way_only() -> None:
    for session in ("monday", "tuesdays", "wednesday"):
        cursor = encode_cursor("page", session)
        for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_":
            if last != cursor[-1]:
                with pytest.raises(ValueError, match="unknown or altered"):
                    decode_cursor("page", cursor[:-1] + last)
