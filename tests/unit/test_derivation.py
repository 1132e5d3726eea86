"""Which rows fall with what is gone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.governance.derivation import orphans

ROWS = st.integers(0, 7)
GRAPHS = st.dictionaries(ROWS, st.sets(ROWS, max_size=4), max_size=8)


def test_a_row_falls_with_the_last_of_its_sources() -> None:
    assert orphans({"d": {"gone"}}, {"gone"}) == {"d"}
    assert orphans({"d": {"gone", "there"}}, {"gone"}) == set()
    assert orphans({"d": {"gone"}}, {"gone"}, {"d"}) == set()


def test_a_chain_falls_as_a_whole_and_is_held_by_any_link() -> None:
    chain = {"a": {"gone"}, "b": {"a"}, "c": {"b", "gone"}}
    assert orphans(chain, {"gone"}) == {"a", "b", "c"}
    assert orphans(chain, {"gone"}, {"b"}) == {"a"}


def test_a_circle_holds_nothing_up() -> None:
    assert orphans({"a": {"gone", "b"}, "b": {"a"}}, {"gone"}) == {"a", "b"}
    assert orphans({"a": {"gone", "b"}, "b": {"a", "there"}}, {"gone"}) == set()


@given(GRAPHS, st.sets(ROWS, max_size=3), st.sets(ROWS, max_size=2))
def test_what_stays_rests_on_something_that_stays(
    sources: dict[int, set[int]], gone: set[int], standing: set[int]
) -> None:
    sources = {row: from_ for row, from_ in sources.items() if row not in gone}
    fallen = orphans(sources, gone, standing)
    for row in sources.keys() - fallen:
        assert row in standing or sources[row] - gone - fallen
    for row in fallen:
        assert row not in standing
        assert not sources[row] - gone - fallen


def test_a_long_chain_of_rows_that_stay_is_followed_once() -> None:
    class Counted(dict[int, frozenset[int]]):
        asked = 0

        def __getitem__(self, row: int) -> frozenset[int]:
            self.asked += 1
            return super().__getitem__(row)

    length = 500
    sources = Counted({row: frozenset({row - 1}) for row in range(1, length)})
    sources[1] = frozenset({0, -1})  # 0 is gone, and -1 is not
    assert orphans(sources, {0}) == set()
    assert sources.asked <= length
    sources[1] = frozenset({0})
    assert orphans(sources, {0}) == set(range(1, length))
    assert orphans(sources, {0}, {250}) == set(range(1, 250))
