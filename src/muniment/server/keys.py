"""The keys that tokens are verified with: one that is configured, or a published set."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jwt
from aiohttp import ClientError, ClientSession
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from muniment.server.settings import ASYMMETRIC, EDWARDS, RSA, AuthSettings

FRESH_SECONDS = 300.0
STALE_SECONDS = 24 * 3600.0
PAUSE_SECONDS = 10.0
_FETCH_SECONDS = 5.0
_MOST_BYTES = 1 << 20
_OK = 200
_LEAST_RSA_BITS = 2048
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_log = logging.getLogger("muniment.server.keys")


class UnknownKey(Exception):
    """No key of ours belongs to the token."""


class KeysUnavailable(Exception):
    """The published keys cannot be fetched, and none are held."""


class Keys(Protocol):
    """Finds the key for a token's header."""

    async def key(self, header: Mapping[str, Any]) -> Any:
        """A key that PyJWT takes, fit for the header's algorithm; UnknownKey, KeysUnavailable."""
        ...


class FixedKey:
    """One configured key, for every token."""

    def __init__(self, key: str) -> None:
        self._key = key

    async def key(self, header: Mapping[str, Any]) -> Any:  # noqa: ARG002 - the port's shape
        """The key."""
        return self._key


class PublishedKeys:
    """The key set of one configured URL (RFC 7517): cached, and fetched anew when a token names
    a key that is not in it, at most once in ten seconds. A set that cannot be fetched anew goes
    on being used for a day. Nothing in a token says where keys come from."""

    def __init__(
        self,
        url: str,
        client: ClientSession,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._client = client
        self._clock = clock
        self._keys: dict[str | None, jwt.PyJWK] = {}
        self._fetched: float | None = None  # when the keys that are held were
        self._tried: float | None = None  # when the last attempt ended
        self._searched: float | None = None
        self._lock = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None

    async def key(self, header: Mapping[str, Any]) -> Any:
        """The key that the header's `kid` names; the only one where it names none."""
        await self._renew()
        found = self._find(header)
        if found is None and self._may_search():
            await self._attempt()
            found = self._find(header)
        if found is None:
            raise UnknownKey
        return found

    def _find(self, header: Mapping[str, Any]) -> jwt.PyJWK | None:
        kid = header.get("kid")
        if kid is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(kid) if isinstance(kid, str) else None

    def _may_search(self) -> bool:
        now = self._clock()
        if self._searched is not None and now - self._searched < PAUSE_SECONDS:
            return False
        self._searched = now
        return True

    async def _renew(self) -> None:
        """Fetch keys that are none, or too old. Once an attempt has failed, nobody waits for the
        next one: the old keys are used meanwhile. KeysUnavailable where there are none."""
        now = self._clock()
        if self._fetched is None:
            await self._attempt()
        elif now - self._fetched > FRESH_SECONDS:
            failed = self._tried is not None and self._tried > self._fetched
            if not failed:
                await self._attempt()
            elif now - (self._tried or now) > PAUSE_SECONDS and self._renewing is None:
                self._renewing = asyncio.create_task(self._attempt())
                self._renewing.add_done_callback(self._renewed)
        if self._fetched is None or self._clock() - self._fetched > STALE_SECONDS:
            raise KeysUnavailable

    def _renewed(self, _: asyncio.Task[None]) -> None:
        self._renewing = None

    async def _attempt(self) -> None:
        """Fetch them, unless somebody else tried while we waited for our turn."""
        asked = self._clock()
        async with self._lock:
            if self._tried is not None and self._tried >= asked:
                return
            try:
                self._keys = await self._fetch()
                self._fetched = self._tried = self._clock()
            except (ClientError, TimeoutError, ValueError, RecursionError) as error:
                self._tried = self._clock()
                _log.warning("the key set cannot be fetched (%s)", type(error).__name__)

    async def _fetch(self) -> dict[str | None, jwt.PyJWK]:
        async with asyncio.timeout(_FETCH_SECONDS):
            body = await self._body()
        listed = json.loads(body)
        rows = listed.get("keys") if isinstance(listed, dict) else None
        if not isinstance(rows, list):
            raise ValueError("no key set")
        return {row.get("kid"): key for row in rows if (key := _usable(row)) is not None}

    async def _body(self) -> bytes:
        body = b""
        async with self._client.get(self._url, allow_redirects=False) as response:
            if response.status != _OK:
                raise ValueError("the key set is not there")
            async for part in response.content.iter_any():
                body += part
                if len(body) > _MOST_BYTES:
                    raise ValueError("the key set is too large")
        return body


def _usable(row: object) -> jwt.PyJWK | None:
    """The public key of one row; None for a secret one, one for encryption, and rubbish."""
    if not isinstance(row, dict) or row.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    if row.get("use") not in (None, "sig") or row.get("alg", "RS256") not in ASYMMETRIC:
        return None
    if not isinstance(row.get("kid"), str | None):
        return None
    try:
        key = jwt.PyJWK(row)
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, AttributeError):
        return None
    short = isinstance(key.key, rsa.RSAPublicKey) and key.key.key_size < _LEAST_RSA_BITS
    return None if short or not _is_public(key.key) else key


def _is_public(key: object) -> bool:
    kinds = (rsa.RSAPublicKey, ec.EllipticCurvePublicKey)
    return isinstance(key, (*kinds, ed25519.Ed25519PublicKey, ed448.Ed448PublicKey))


def algorithms_of(pem: str) -> tuple[str, ...]:
    """The algorithms that fit a public key in PEM form, the usual one first; ValueError."""
    try:
        key = load_pem_public_key(pem.encode())
    except Exception:
        raise ValueError("must hold a public key in PEM form") from None
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < _LEAST_RSA_BITS:
            raise ValueError(f"must be an RSA key of at least {_LEAST_RSA_BITS} bits")
        return RSA
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return (_CURVES[key.curve.name],)
    if isinstance(key, (ed25519.Ed25519PublicKey, ed448.Ed448PublicKey)):
        return EDWARDS
    raise ValueError("must be an RSA, P-256, P-384, P-521 or Edwards key")


def keys_for(settings: AuthSettings, client: ClientSession) -> Keys:
    """Where the keys of `settings` (mode jwt) come from."""
    if settings.jwks_url is not None:
        return PublishedKeys(settings.jwks_url, client)
    return FixedKey(settings.secret or settings.public_key or "")
