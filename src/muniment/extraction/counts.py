"""What became of the proposals: figures without any content."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class ExtractionCounts:
    """`malformed` could not be read; `ignored_references` named nothing that was shown, several
    memories at once, another scope, or one that may not be changed; the `dropped_*` were not kept.
    """

    proposed: int = 0
    stored: int = 0
    duplicates: int = 0
    superseded: int = 0
    conflicts: int = 0
    malformed: int = 0
    ignored_references: int = 0
    dropped_blank: int = 0
    dropped_unimportant: int = 0
    dropped_secret: int = 0
    dropped_invalid: int = 0
    dropped_excess: int = 0

    def add(self, other: ExtractionCounts) -> None:
        """Add the figures of `other` to these."""
        for name, value in other.fields().items():
            setattr(self, name, getattr(self, name) + value)

    def fields(self) -> dict[str, int]:
        """The figures by name, for a log record or a metric."""
        return asdict(self)

    @property
    def suspicious(self) -> bool:
        """Whether the model wrote what it should not have written."""
        return bool(
            self.malformed or self.ignored_references or self.dropped_secret or self.dropped_invalid
        )
