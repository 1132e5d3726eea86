"""Images in memory: which are kept, and what finding one costs."""

from __future__ import annotations

from dataclasses import dataclass, field

from muniment.stores.kept import Kept

SIZE = 100
_made: list[int] = []


@dataclass
class _Image:
    nbytes: int = SIZE
    number: int = field(default_factory=lambda: len(_made))

    def __post_init__(self) -> None:
        _made.append(self.number)


def test_the_least_recently_used_image_goes_first() -> None:
    kept: Kept[str, _Image] = Kept(_Image, 3 * SIZE)
    for key in "abc":
        kept.image(key)
        kept.fit(key)
    kept.image("a")
    kept.image("d")
    kept.fit("d")
    assert list(kept) == ["c", "a", "d"]
    kept.image("a").nbytes = 9 * SIZE
    kept.fit("a")
    assert list(kept) == ["a"]
    kept.drop()
    assert kept.nbytes == 0


def test_one_image_is_kept_whatever_it_takes() -> None:
    kept: Kept[str, _Image] = Kept(_Image, 1)
    image = kept.image("a")
    kept.fit("a")
    assert kept.image("a") is image


def test_an_image_is_made_once() -> None:
    kept: Kept[str, _Image] = Kept(_Image, 9 * SIZE)
    before = len(_made)
    assert len({id(kept.image("a")) for _ in range(5)}) == 1
    assert len(_made) == before + 1


def test_what_was_forgotten_is_not_counted() -> None:
    kept: Kept[str, _Image] = Kept(_Image, 9 * SIZE)
    for key in "abc":
        kept.image(key)
    kept.forget(["b", "unknown"])
    kept.fit("b")
    assert (list(kept), kept.nbytes) == (["a", "c"], 2 * SIZE)


def test_finding_an_image_looks_at_no_other() -> None:
    looked_at: list[str] = []

    class Watched:
        def __init__(self) -> None:
            self.name = ""

        @property
        def nbytes(self) -> int:
            looked_at.append(self.name)
            return 1

    kept: Kept[str, Watched] = Kept(Watched, 1_000)
    for number in range(50):
        kept.image(f"i{number}").name = f"i{number}"
    looked_at.clear()
    kept.image("i7")
    kept.fit("i7")
    assert set(looked_at) == {"i7"}
