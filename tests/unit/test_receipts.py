"""Erasure receipts: their form, and the digest that anybody with the ids can repeat."""

from __future__ import annotations

import hashlib

import pytest

from muniment.governance.receipts import ErasureReceipt, erasure_digest, parse_receipt


def test_a_digest_is_over_the_sorted_ids_as_json() -> None:
    expected = hashlib.sha256(b'["a","b","\\u00fc"]').hexdigest()
    assert erasure_digest(["b", "\u00fc", "a"]) == expected
    assert erasure_digest(iter(["a", "b", "\u00fc"])) == expected
    assert erasure_digest(["a", "b", "b", "\u00fc"]) != expected


def test_a_receipt_is_read_back() -> None:
    receipt = ErasureReceipt("0f" * 16, erasure_digest(["m1"]))
    assert str(receipt).startswith("muniment-erasure:0f0f")
    assert parse_receipt(str(receipt)) == receipt


@pytest.mark.parametrize(
    "text", ["", "muniment-erasure:x", "muniment-erasure::" + "a" * 64, "x:y:" + "a" * 64, None]
)
def test_anything_else_is_no_receipt(text: object) -> None:
    with pytest.raises(ValueError, match=r"^receipt: "):
        parse_receipt(text)  # type: ignore[arg-type]
