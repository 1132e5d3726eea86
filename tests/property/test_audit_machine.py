"""Every store records the same, whatever is done, under several owners."""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import Scope
from muniment.domain.scope import MemoryScope
from muniment.governance.audit import verify_audit_log
from muniment.stores.in_memory import InMemoryStore
from muniment.stores.sqlite import AsyncSQLiteStore
from tests.property.test_store_machine import REALMS, Call, StoresAgree

ANA = MemoryOwner("acme", user_id="ana", principal_id="key", session_id="s1")


class AuditedStoresAgree(StoresAgree):
    """After each call, both logs have grown by the same events, realms, ids and counts."""

    @initialize()
    def open_stores(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp())
        self.logs = [self.folder / "one.jsonl", self.folder / "two.jsonl"]
        self.stores = (
            InMemoryStore(clock=self.clock, audit=self.logs[0]),
            AsyncSQLiteStore(
                self.folder / "memory.db",
                clock=self.clock,
                synchronous="NORMAL",
                audit=self.logs[1],
            ),
        )
        self.seen = [0, 0]
        self.numbers = itertools.count()

    def answers(self, call: Call) -> tuple[Any, Any]:
        answers = super().answers(call)
        oracle, tested = (self.recorded(number) for number in range(2))
        assert tested == oracle
        return answers

    def recorded(self, number: int) -> Counter[str]:
        """What one log has grown by, each record without what is its own."""
        lines = self.logs[number].read_bytes().splitlines()
        new, self.seen[number] = lines[self.seen[number] :], len(lines)
        records = map(json.loads, new)
        for record in (records := list(records)):
            del record["data"]["record_id"]
            for name in ("sequence", "hash", "previous_hash"):
                del record[name]
        return Counter(json.dumps(record) for record in records)

    @rule(ids=st.permutations(["m1", "m2", "m3"]), middle=st.booleans())
    def a_succession_ends(self, ids: list[str], middle: bool) -> None:
        """The rules at random seldom replace what is there, and then delete the replacement."""
        texts = map(str, self.numbers)
        self.store_fact(ANA, ids[0], MemoryScope.USER, next(texts), None, None)
        self.store_fact(ANA, ids[1], MemoryScope.USER, next(texts), None, ids[0])
        self.store_fact(ANA, ids[2], MemoryScope.USER, next(texts), None, ids[1])
        self.delete(ANA, ids[1] if middle else ids[2])

    @rule(realm=REALMS)
    def sweep(self, realm: Scope) -> None:
        self.same(lambda store: store.sweep_expired(realm))

    def teardown(self) -> None:
        for log in getattr(self, "logs", ()):
            assert verify_audit_log(log).ok
        super().teardown()


AuditedStoresAgree.TestCase.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
TestStoresRecordTheSame = AuditedStoresAgree.TestCase
