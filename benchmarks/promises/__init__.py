"""The promises that are broken on trial, one by one, and the tests that guard each."""

from benchmarks.promises.audit import AUDIT
from benchmarks.promises.domain import DOMAIN
from benchmarks.promises.entries import ENTRIES
from benchmarks.promises.exchanges import EXCHANGES
from benchmarks.promises.extraction import EXTRACTION
from benchmarks.promises.governance import GOVERNANCE
from benchmarks.promises.mutation import Mutation
from benchmarks.promises.recall import RECALL
from benchmarks.promises.sqlite import SQLITE
from benchmarks.promises.stores import STORES
from benchmarks.promises.tiers import TIERS
from benchmarks.promises.turn import TURN

MUTATIONS: tuple[Mutation, ...] = (
    *DOMAIN,
    *TURN,
    *RECALL,
    *EXTRACTION,
    *TIERS,
    *STORES,
    *SQLITE,
    *GOVERNANCE,
    *AUDIT,
    *ENTRIES,
    *EXCHANGES,
)

__all__ = ["MUTATIONS", "Mutation"]
