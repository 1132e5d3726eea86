"""The conformance kit: what every store must do, as runnable specs; for third-party stores too.

Give `Kit` a way to make a store, then run every spec of the capabilities it has::

    @pytest.mark.parametrize("spec", specs(), ids=str)
    async def test_my_store(spec: Spec) -> None:
        async with Kit.of(lambda clock, embedder: MyStore(clock=clock, embedder=embedder)) as kit:
            await spec.run(kit)
"""

from muniment.testing.doubles import HashingEmbedder, ManualClock
from muniment.testing.kit import AsyncStore, Kit
from muniment.testing.registry import Capability, Spec, specs

__all__ = ["AsyncStore", "Capability", "HashingEmbedder", "Kit", "ManualClock", "Spec", "specs"]
