"""The policy: its defaults, its ranges, what model output may write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muniment import (
    DEFAULT_RECALL_SCOPES,
    MemoryConfigurationError,
    MemoryPolicy,
    MemoryRetention,
    MemoryScope,
    Trust,
)

NOW = datetime(2026, 3, 10, tzinfo=UTC)


def test_the_defaults_are_the_documented_ones() -> None:
    policy = MemoryPolicy()
    assert (policy.recent_max_messages, policy.recent_max_tokens) == (12, 2000)
    assert (policy.summary_trigger_fraction, policy.summary_keep_messages) == (0.7, 8)
    assert (policy.recall_top_k, policy.recall_scopes) == (6, DEFAULT_RECALL_SCOPES)
    assert (policy.min_trust, policy.recall_messages) == (Trust.UNTRUSTED, "off")
    assert policy.block_tokens == 300
    assert [scope.value for scope in DEFAULT_RECALL_SCOPES] == [
        "user",
        "project",
        "session",
        "tenant",
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enabled", 1),
        ("recent_max_messages", 0),
        ("recent_max_messages", True),
        ("recent_max_tokens", 1.5),
        ("summary_trigger_fraction", 1.1),
        ("summary_trigger_fraction", float("nan")),
        ("summary_keep_messages", 13),
        ("recall_top_k", -1),
        ("recall_scopes", ("user", "user")),
        ("recall_scopes", ("planet",)),
        ("recall_scopes", "user"),
        ("recency_half_life_hours", 0),
        ("dedup_threshold", 0.4),
        ("entity_overlap_weight", 2.1),
        ("type_affinity_weight", -0.1),
        ("retention", 3),
        ("min_trust", "royal"),
        ("recall_messages", "all"),
        ("call_timeout_seconds", 0),
        ("block_overflow", "wrap"),
    ],
)
def test_a_field_that_does_not_fit_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(MemoryConfigurationError, match=f"^{field}: must"):
        MemoryPolicy(**{field: value})


def test_names_are_taken_for_scopes_and_trust() -> None:
    policy = MemoryPolicy(recall_scopes=("user",), min_trust="model")  # type: ignore[arg-type]
    assert policy.recall_scopes == (MemoryScope.USER,)
    assert policy.min_trust is Trust.MODEL


def test_the_disabled_policy_has_a_four_message_window_and_asks_nothing() -> None:
    policy = MemoryPolicy.disabled()
    assert policy.recent_max_messages == 4
    assert not any([policy.enabled, policy.query_rewrite, policy.extraction_enabled])
    assert policy.recall_top_k == 0


@pytest.mark.parametrize(
    ("gate", "requested", "written"),
    [
        (False, MemoryScope.USER, MemoryScope.USER),
        (False, MemoryScope.PROJECT, MemoryScope.SESSION),
        (True, MemoryScope.PROJECT, MemoryScope.PROJECT),
        (True, MemoryScope.TENANT, MemoryScope.SESSION),
        (True, MemoryScope.GLOBAL, MemoryScope.SESSION),
        (True, MemoryScope.RUN, MemoryScope.SESSION),
    ],
)
def test_model_output_is_written_no_wider_than_the_policy_lets_it(
    gate: bool, requested: MemoryScope, written: MemoryScope
) -> None:
    assert MemoryPolicy(extraction_project_scope=gate).write_scope(requested) is written


def test_retention_counts_days_by_scope_and_zero_never_expires() -> None:
    retention = MemoryRetention(session_days=90, user_days=365)
    assert retention.days(MemoryScope.RUN) == 90
    assert retention.expires_at(MemoryScope.USER, NOW) == NOW + timedelta(days=365)
    for scope in (MemoryScope.PROJECT, MemoryScope.TENANT, MemoryScope.GLOBAL):
        assert retention.expires_at(scope, NOW) is None
    with pytest.raises(MemoryConfigurationError, match=r"^user_days: must"):
        MemoryRetention(user_days=-1)


def test_an_expiry_beyond_the_calendar_is_never() -> None:
    last = datetime(9999, 12, 30, tzinfo=UTC)
    assert MemoryRetention(user_days=30).expires_at(MemoryScope.USER, last) is None
