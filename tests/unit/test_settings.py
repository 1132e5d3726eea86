"""Settings: names, defaults, and one clear line for a bad value."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from muniment import MemoryConfigurationError, MemoryPolicy, MemoryScope, settings
from muniment.settings import DEFAULT_URL, load_settings


@pytest.fixture(autouse=True)
def _notice_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_noticed", False)


def test_without_any_variable_the_defaults_hold() -> None:
    loaded = load_settings({})
    assert (loaded.database_url, loaded.embedder, loaded.model) == (DEFAULT_URL, "auto", None)
    assert loaded.policy.recall_messages == "user"
    retention = loaded.policy.retention
    assert (retention.session_days, retention.user_days, retention.project_days) == (90, 365, 0)


def test_quotas_are_off_unless_set() -> None:
    loaded = load_settings({})
    assert (loaded.quota_entries, loaded.quota_tokens) == (None, None)
    loaded = load_settings({"MUNIMENT_QUOTA_ENTRIES": "0", "HARBORRAG_QUOTA_TOKENS": "90"})
    assert (loaded.quota_entries, loaded.quota_tokens) == (0, 90)


def test_every_policy_field_can_be_set() -> None:
    loaded = load_settings(
        {
            "MUNIMENT_MEMORY_RECALL_TOP_K": "9",
            "MUNIMENT_MEMORY_QUERY_REWRITE": "off",
            "MUNIMENT_MEMORY_DEDUP_THRESHOLD": "0.8",
            "MUNIMENT_MEMORY_MIN_TRUST": "Model",
            "MUNIMENT_MEMORY_RECALL_SCOPES": "user, session",
            "MUNIMENT_MEMORY_RECALL_MESSAGES": "session",
            "MUNIMENT_MEMORY_EXTRACTION_ENABLED": "false",
            "MUNIMENT_MEMORY_RETENTION_DAYS_USER": "0",
        }
    ).policy
    assert (loaded.recall_top_k, loaded.query_rewrite, loaded.dedup_threshold) == (9, False, 0.8)
    assert loaded.recall_scopes == (MemoryScope.USER, MemoryScope.SESSION)
    assert (loaded.min_trust.value, loaded.recall_messages) == ("model", "session")
    assert not loaded.extraction_enabled
    assert loaded.retention.user_days == 0


def test_memory_switched_off_is_the_disabled_policy() -> None:
    assert load_settings({"MUNIMENT_MEMORY_ENABLED": "0"}).policy == MemoryPolicy.disabled()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MEMORY_RECALL_TOP_K", "many", "whole number from 0 to 1000"),
        ("MEMORY_RECALL_TOP_K", "-1", "whole number from 0 to 1000"),
        ("MEMORY_RECALL_TOP_K", "1.5", "whole number"),
        ("QUOTA_ENTRIES", "-1", "whole number from 0"),
        ("QUOTA_TOKENS", "lots", "whole number from 0"),
        ("MEMORY_DEDUP_THRESHOLD", "nan", "from 0.5 to 1"),
        ("MEMORY_DEDUP_THRESHOLD", "x", "must be a number"),
        ("MEMORY_ENABLED", "perhaps", "true or false"),
        ("MEMORY_QUERY_REWRITE", "2", "true or false"),
        ("MEMORY_RECALL_SCOPES", "planet", "run, session, user"),
        ("MEMORY_RECALL_MESSAGES", "all", "off, session, user"),
        ("MEMORY_RETENTION_DAYS_USER", "-1", "from 0 to 36500"),
        ("MEMORY_SUMMARY_KEEP_MESSAGES", "13", "recent_max_messages"),
        ("EMBEDDER", "magic", "auto, local, none"),
    ],
)
def test_a_bad_value_is_one_line_with_the_variable_and_the_range(
    name: str, value: str, said: str
) -> None:
    for prefix in ("MUNIMENT_", "HARBORRAG_"):
        with pytest.raises(MemoryConfigurationError) as refused:
            load_settings({prefix + name: value})
        text = str(refused.value)
        assert text.startswith(f"{prefix}{name}: must")
        assert said in text
        assert "\n" not in text


def test_the_other_prefix_is_read_where_ours_is_unset_with_one_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    both = {
        "HARBORRAG_DATABASE_URL": "sqlite:///theirs.db",
        "HARBORRAG_MEMORY_RECALL_TOP_K": "2",
        "MUNIMENT_MEMORY_RECALL_TOP_K": "3",
    }
    for _ in range(2):
        loaded = load_settings(both)
    assert (loaded.database_url, loaded.policy.recall_top_k) == ("sqlite:///theirs.db", 3)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_the_database_url_has_a_second_name() -> None:
    assert load_settings({"MUNIMENT_CONTROL_DB_URL": "memory://"}).database_url == "memory://"


def test_a_served_model_needs_a_name_and_its_key_is_never_shown() -> None:
    values: dict[str, Any] = {
        "MUNIMENT_MODEL": "small",
        "MUNIMENT_MODEL_BASE_URL": "http://127.0.0.1:1/v1",
        "MUNIMENT_MODEL_API_KEY": "hush-hush",
    }
    model = load_settings(values).model
    assert model is not None
    assert (model.name, model.api_key, model.timeout_seconds) == ("small", "hush-hush", 60.0)
    assert "hush-hush" not in repr(load_settings(values))
    del values["MUNIMENT_MODEL"]
    with pytest.raises(MemoryConfigurationError, match=r"^MUNIMENT_MODEL: must name"):
        load_settings(values)
