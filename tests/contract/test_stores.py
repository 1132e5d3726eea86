"""Every spec of the conformance kit on every store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.testing import Capability, Kit, Spec
from muniment.testing.registry import specs
from tests.contract.stores import BEHIND, DURABLE, MAKERS


def _cases() -> Iterator[object]:
    for store in MAKERS:
        for spec in specs():
            lasting = spec.capability is not Capability.DURABILITY or store in DURABLE
            if lasting and not {spec.name, spec.capability} & set(BEHIND.get(store, ())):
                yield pytest.param(store, spec, id=f"{store}-{spec}")


@pytest.mark.parametrize(("store", "spec"), list(_cases()))
async def test_a_store_conforms(store: str, spec: Spec, tmp_path: Path) -> None:
    async with Kit.of(MAKERS[store](tmp_path)) as kit:
        await spec.run(kit)
