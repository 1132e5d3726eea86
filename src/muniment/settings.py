"""The settings: the only reader of the environment."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from muniment.context.policy import MAX_RETENTION_DAYS, MemoryPolicy, MemoryRetention
from muniment.errors import MemoryConfigurationError
from muniment.evidence.weights import BY_NAME, DEFAULT_NAME
from muniment.governance.quotas import LARGEST_QUOTA

PREFIX = "MUNIMENT_"
OTHER_PREFIX = "HARBORRAG_"
DEFAULT_URL = "sqlite:///muniment.db"
EMBEDDERS = ("auto", "local", "none")

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_RETENTION = {"session": 90, "user": 365, "project": 0}
_OTHERWISE_NAMED = frozenset({"enabled", "retention"})
_log = logging.getLogger("muniment.settings")
_noticed = False


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """An OpenAI-compatible model: its name, where it is served, and seconds to wait for it."""

    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says: the store's URL, policy, embedder, model, audit log, quotas.

    `valkey_url` names a Valkey or Redis that keeps working memory in the store's place.
    """

    database_url: str
    policy: MemoryPolicy
    embedder: str = "auto"
    model: ModelSettings | None = None
    audit_path: str | None = None
    quota_entries: int | None = None
    quota_tokens: int | None = None
    encryption_key: str | None = field(default=None, repr=False)
    ranking: str = DEFAULT_NAME
    valkey_url: str | None = field(default=None, repr=False)


def load_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of `environment` (the process's own by default).

    MemoryConfigurationError is one line with the variable, the problem and the allowed range.
    """
    read = reader(environment)
    settings = Settings(
        database_url=read.text("DATABASE_URL") or read.text("CONTROL_DB_URL") or DEFAULT_URL,
        policy=_policy(read),
        embedder=read.choice("EMBEDDER", EMBEDDERS, "auto"),
        model=_model(read),
        audit_path=read.text("AUDIT_PATH"),
        quota_entries=_quota(read, "QUOTA_ENTRIES"),
        quota_tokens=_quota(read, "QUOTA_TOKENS"),
        encryption_key=read.text("ENCRYPTION_KEY"),
        ranking=read.choice("RANKING", tuple(BY_NAME), DEFAULT_NAME),
        valkey_url=read.text("VALKEY_URL"),
    )
    read.notice()
    return settings


def reader(environment: Mapping[str, str] | None = None) -> Reader:
    """A reader of `environment` (the process's own by default)."""
    return Reader(os.environ if environment is None else environment)


class Reader:
    """Variables by name: ours, or the same name under the other prefix. Blank means unset."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._borrowed = False

    def variable(self, name: str) -> str:
        """The full name under which `name` is set, ours where it is not."""
        for prefix in (PREFIX, OTHER_PREFIX):
            if self._environment.get(prefix + name, "").strip():
                return prefix + name
        return PREFIX + name

    def text(self, name: str) -> str | None:
        variable = self.variable(name)
        self._borrowed |= variable.startswith(OTHER_PREFIX)
        return self._environment.get(variable, "").strip() or None

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in _TRUE | _FALSE:
            raise self.error(name, "must be true or false")
        return value.lower() in _TRUE

    def number(self, name: str, default: float, *, low: float, high: float) -> float:
        value = self.text(name)
        try:
            number = default if value is None else float(value)
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            raise self.error(name, f"must be a number from {low:g} to {high:g}")
        return number

    def whole(self, name: str, default: int, *, low: int, high: int) -> int:
        value = self.text(name)
        number = default if value is None else _whole(value)
        if number is None or not low <= number <= high:
            raise self.error(name, f"must be a whole number from {low} to {high}")
        return number

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = (self.text(name) or default).lower()
        if value not in allowed:
            raise self.error(name, f"must be one of {', '.join(allowed)}")
        return value

    def error(self, name: str, problem: str) -> MemoryConfigurationError:
        return MemoryConfigurationError(f"{self.variable(name)}: {problem}")

    def notice(self) -> None:
        """Say once a process that the other prefix was read."""
        global _noticed
        if self._borrowed and not _noticed:
            _noticed = True
            _log.warning("settings with the prefix %s were read; ours is %s", OTHER_PREFIX, PREFIX)


def _policy(read: Reader) -> MemoryPolicy:
    if not read.flag("MEMORY_ENABLED", True):
        return MemoryPolicy.disabled()
    values: dict[str, Any] = {"recall_messages": "user", "retention": _retention(read)}
    for each in fields(MemoryPolicy):
        text = read.text(_variable(each.name))
        if each.name not in _OTHERWISE_NAMED and text is not None:
            values[each.name] = _policy_value(read, each.name, text)
    try:
        return MemoryPolicy(**values)
    except MemoryConfigurationError as error:
        name, _, problem = str(error).partition(": ")
        raise read.error(_variable(name), problem) from None


def _policy_value(read: Reader, name: str, text: str) -> Any:
    """`text` as the kind that the field's default has; its range is the policy's to check."""
    default = getattr(_DEFAULTS, name)
    if isinstance(default, bool):
        return read.flag(_variable(name), default)
    if isinstance(default, tuple):
        return tuple(part.strip().lower() for part in text.split(",") if part.strip())
    if isinstance(default, str):
        return text.lower()
    number = _whole(text) if isinstance(default, int) else _float(text)
    return text if number is None else number


def _retention(read: Reader) -> MemoryRetention:
    days = {
        scope: read.whole(
            f"MEMORY_RETENTION_DAYS_{scope.upper()}", default, low=0, high=MAX_RETENTION_DAYS
        )
        for scope, default in _RETENTION.items()
    }
    return MemoryRetention(days["session"], days["user"], days["project"])


def _quota(read: Reader, name: str) -> int | None:
    """A limit a tenant; unset is none."""
    return None if read.text(name) is None else read.whole(name, 0, low=0, high=LARGEST_QUOTA)


def _model(read: Reader) -> ModelSettings | None:
    name = read.text("MODEL")
    base_url = read.text("MODEL_BASE_URL")
    if name is None:
        if base_url is not None:
            raise read.error("MODEL", "must name the model to use at MODEL_BASE_URL")
        return None
    timeout = read.number("MODEL_TIMEOUT_SECONDS", 60.0, low=0.1, high=3600.0)
    return ModelSettings(name, base_url, read.text("MODEL_API_KEY"), timeout)


def _variable(field_name: str) -> str:
    return f"MEMORY_{field_name.upper()}"


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


_DEFAULTS = MemoryPolicy()
