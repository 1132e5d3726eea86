"""The conformance kit: what every store must do, as runnable specs; for third-party stores too.

Give `Kit` a way to make a store, then run every spec of the capabilities it has::

    @pytest.mark.parametrize("spec", specs(), ids=str)
    async def test_my_store(spec: Spec) -> None:
        async with Kit.of(make) as kit:
            await spec.run(kit)

where ``make(clock, embedder, **options)`` gives a store; the options are those of every store:
`quota_entries`, `quota_tokens`, `token_estimator` and `max_text_bytes`.
"""

from muniment.testing.doubles import HashingEmbedder, ManualClock
from muniment.testing.kit import AsyncStore, Kit
from muniment.testing.registry import Capability, Spec, specs

__all__ = ["AsyncStore", "Capability", "HashingEmbedder", "Kit", "ManualClock", "Spec", "specs"]
