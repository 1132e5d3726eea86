"""How far a memory can be trusted."""

from __future__ import annotations

from muniment.domain.named import NamedEnum


class Trust(NamedEnum):
    """``untrusted`` < ``model`` < ``owner``: compares by rank, not by spelling."""

    UNTRUSTED = "untrusted"
    MODEL = "model"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        """0 for untrusted, 1 for model, 2 for owner."""
        return _RANK[self]

    def __lt__(self, other: object) -> bool:
        return self.rank < _rank_of(other)

    def __le__(self, other: object) -> bool:
        return self.rank <= _rank_of(other)

    def __gt__(self, other: object) -> bool:
        return self.rank > _rank_of(other)

    def __ge__(self, other: object) -> bool:
        return self.rank >= _rank_of(other)


_RANK = {trust: rank for rank, trust in enumerate(Trust)}


def _rank_of(other: object) -> int:
    return _RANK[other if isinstance(other, Trust) else Trust(str(other))]
