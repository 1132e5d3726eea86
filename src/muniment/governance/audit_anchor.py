"""How far a log was vouched for, kept so that a later opening can tell what became of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from muniment.errors import AuditError
from muniment.governance.audit_chain import BrokenChain, Tail, still_ends_with
from muniment.governance.audit_file import Stamp


@dataclass(frozen=True, slots=True)
class Anchor:
    """The tail of a log that was sound, and the file's stamp at that moment.

    The default is the beginning of any log.
    """

    tail: Tail = field(default_factory=Tail)
    stamp: Stamp | None = None

    def to_text(self) -> str:
        """One line of JSON, for a setting."""
        parts = {"tail": self.tail, "stamp": self.stamp}
        fields = {name: _fields(part) for name, part in parts.items()}
        return json.dumps(fields)

    @classmethod
    def of_text(cls, text: str | None) -> Anchor:
        """The inverse of `to_text`; the beginning where there is no text. AuditError."""
        if text is None:
            return cls()
        try:
            fields: dict[str, Any] = json.loads(text)
            stamp = fields["stamp"]
            return cls(Tail(**fields["tail"]), None if stamp is None else Stamp(**stamp))
        except (ValueError, TypeError, KeyError):
            raise AuditError("the store's anchor of the audit log is damaged") from None

    def is_prefix(self, stream: BinaryIO, stamp: Stamp) -> bool:
        """Whether the file only grew since, as far as its stamp and our last record tell."""
        known = self.stamp
        if known is None or known == stamp:
            return known is not None
        return known.grew_into(stamp) and still_ends_with(stream, self.tail)

    def require_continued(self, stream: BinaryIO, tail: Tail) -> None:
        """BrokenChain unless the sound log that ends in `tail` continues from here."""
        if tail.records < self.tail.records:
            raise BrokenChain("records that were there are cut off", tail)
        if tail != self.tail and not still_ends_with(stream, self.tail):
            raise BrokenChain("records that were there are replaced", tail)


def _fields(part: Tail | Stamp | None) -> dict[str, Any] | None:
    # `asdict` copies deeply, at ten times the price; these hold plain values.
    return None if part is None else {name: getattr(part, name) for name in part.__slots__}
