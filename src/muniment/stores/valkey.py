"""Working memory in Valkey or Redis: one key a run, which expires by itself."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import Any

from muniment import forks
from muniment.domain import checks
from muniment.domain.owner import MemoryOwner
from muniment.domain.realm import RealmKey, Scope, realm_key
from muniment.domain.working import WorkingKey, checked_state, checked_ttl, working_key
from muniment.errors import MemoryStoreError
from muniment.extras import missing_extra
from muniment.stores.rows import dumps, micros

try:
    from valkey.asyncio import Valkey
    from valkey.asyncio.retry import Retry
    from valkey.backoff import ExponentialBackoff
    from valkey.exceptions import ConnectionError as ConnectionLost
    from valkey.exceptions import ValkeyError
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "valkey":
        raise
    raise missing_extra("valkey") from None

_PREFIX = "muniment:working"
_MICROS = 1_000_000
_ATTEMPTS = 3
_PAGE = 1_000
_FOREIGN = "a working state in Valkey is not one of ours; put replaces it, delete removes it"


class ValkeyWorkingMemoryStore(forks.Unshared):
    """Scratch states in Valkey or Redis at `url` (`valkey://`, `redis://`, `rediss://`, `unix://`).

    A put replaces state and time to live in one command, and the server forgets what its time is
    over for. With a `clock` of one's own, states end by that clock as well. `timeout_seconds`
    (0.1 to 60) bounds a call, a second try after a lost connection included. `prefix` leads every
    key; the names in a key are digests, so that no key shows whose it is. Use it in one event
    loop, as an async context manager, or `aclose` it. Raises MemoryStoreError.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Callable[[], datetime] | None = None,
        timeout_seconds: float = 5.0,
        prefix: str = _PREFIX,
    ) -> None:
        checks.finite("timeout_seconds", timeout_seconds, low=0.1, high=60)
        self._prefix = prefix
        self._clock = clock
        self._made = partial(_client, _understood(url), timeout_seconds / _ATTEMPTS)
        self._client = self._made()
        forks.tell(self)

    def begin_anew(self) -> None:
        """In a process that was forked off, whose connections are the other one's."""
        forks.give_up(self._client)
        self._client = self._made()

    async def __aenter__(self) -> ValkeyWorkingMemoryStore:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def get(self, owner: MemoryOwner) -> Mapping[str, Any] | None:
        """A copy of the run's state; None where nothing is stored or its time is over."""
        key = self._key(working_key(owner))
        with _store_errors():
            text: str | None = await self._client.get(key)
        if text is None:
            return None
        ends, state = _parts(text)
        over = self._clock is not None and ends is not None and ends <= micros(self._clock())
        return None if over else state

    async def put(self, owner: MemoryOwner, state: Mapping[str, Any], *, ttl_seconds: int) -> None:
        """Replace the run's state; it is gone after `ttl_seconds` (1 s to 365 days)."""
        key = self._key(working_key(owner))
        seconds = checked_ttl(ttl_seconds)
        ends = None if self._clock is None else micros(self._clock()) + seconds * _MICROS
        text = dumps({"ends": ends, "state": checked_state(state)})
        with _store_errors():
            await self._client.set(key, text, ex=seconds)

    async def delete(self, owner: MemoryOwner) -> None:
        """Forget the run's state."""
        key = self._key(working_key(owner))
        with _store_errors():
            await self._client.delete(key)

    async def erase(self, place: Scope | MemoryOwner, *, preview: bool = False) -> int:
        """Forget every state that the realm covers; how many. None belongs to an agent.

        With `preview` they are counted only. It looks at every key of the server's database: an
        administrative call.
        """
        realm = realm_key(place)
        gone = 0
        if realm.agent is None:
            with _store_errors():
                async for keys in self._covered(realm):
                    gone += len(keys) if preview else await self._client.unlink(*keys)
        return gone

    async def _covered(self, realm: RealmKey) -> AsyncIterator[list[str]]:
        parts = (realm.tenant, realm.subject, realm.session)
        found = [_any(part) for part in parts]
        pattern = f"{self._prefix}:{{{found[0]}}}:{found[1]}:{found[2]}:*"
        cursor = 0
        while True:
            cursor, keys = await self._client.scan(cursor, match=pattern, count=_PAGE)
            if keys:
                yield keys
            if not cursor:
                return

    def _key(self, place: WorkingKey) -> str:
        """Injective: the last part is a digest of all five. A tenant's keys share a slot."""
        names = (_digest(place.user), _digest(place.session), _digest(place.key))
        return f"{self._prefix}:{{{_digest(place.tenant)}}}:{':'.join(names)}"


def _client(url: str, share: float) -> Valkey:
    client: Valkey = Valkey.from_url(
        url,
        decode_responses=True,
        socket_timeout=share,
        socket_connect_timeout=share,
        retry=Retry(ExponentialBackoff(cap=0.1, base=0.01), _ATTEMPTS - 1),
        retry_on_error=[ConnectionLost],
    )
    return client


def _understood(url: str) -> str:
    """`url` in the spelling that the client knows."""
    for other, known in (("redis://", "valkey://"), ("rediss://", "valkeys://")):
        if url.startswith(other):
            return known + url.removeprefix(other)
    return url


def _parts(text: str) -> tuple[int | None, dict[str, Any]]:
    """When a state ends, and the state; MemoryStoreError for what no put has written."""
    try:
        held = json.loads(text)
        ends, state = held["ends"], held["state"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise MemoryStoreError(_FOREIGN) from None
    if not isinstance(state, dict) or not isinstance(ends, int | None):
        raise MemoryStoreError(_FOREIGN)
    return ends, state


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:40]


def _any(part: str | None) -> str:
    return "*" if part is None else _digest(part)


@contextlib.contextmanager
def _store_errors() -> Iterator[None]:
    """Valkey's errors in our words: never a key or a value."""
    try:
        yield
    except ValkeyError as error:
        raise MemoryStoreError(f"Valkey reports {type(error).__name__}") from None
    except OSError:
        raise MemoryStoreError("Valkey cannot be reached") from None
    except UnicodeDecodeError:
        raise MemoryStoreError(_FOREIGN) from None
