"""The service's settings, beside those of the memory that it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muniment.domain.checks import MAX_IDENTIFIER
from muniment.settings import Reader, Settings, load_settings, reader

MODES = ("none", "jwt")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SYMMETRIC = ("HS256", "HS384", "HS512")
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ELLIPTIC = ("ES256", "ES384", "ES512")
EDWARDS = ("EdDSA",)
ASYMMETRIC = (*RSA, *ELLIPTIC, *EDWARDS)
_SOURCES = ("AUTH_SECRET", "AUTH_PUBLIC_KEY_FILE", "AUTH_JWKS_URL")
_SHORTEST_SECRET = {"HS256": 32, "HS384": 48, "HS512": 64}


@dataclass(frozen=True, slots=True)
class AuthSettings:
    """How tokens are verified and read; in mode "none" the rest is unused.

    Exactly one of `secret`, `public_key` (PEM text) and `jwks_url` is set in mode "jwt".
    """

    mode: str = "none"
    secret: str | None = field(default=None, repr=False)
    public_key: str | None = None
    jwks_url: str | None = None
    algorithms: tuple[str, ...] = ()
    issuer: str | None = None
    audience: str | None = None
    user_id_claim: str = "sub"
    tenants_claim: str = "tenants"
    role_claim: str = "role"
    projects_claim: str = "projects"
    leeway_seconds: int = 30


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What `muniment serve` runs with. Sizes are bytes, `model_context_tokens` 0 is no budget."""

    memory: Settings
    auth: AuthSettings = AuthSettings()
    host: str = "127.0.0.1"
    port: int = 8000
    max_body_bytes: int = 4 << 20
    max_concurrency: int = 512
    lease_seconds: int = 60
    client_seconds: int = 60
    model_context_tokens: int = 0
    allow_full_memory: bool = False
    retriever: str | None = None
    agent_tools: str | None = None
    metrics_token: str | None = field(default=None, repr=False)

    @property
    def on_loopback(self) -> bool:
        """Only this machine can reach the service."""
        return self.host in LOOPBACK


def load_server_settings(environment: Mapping[str, str] | None = None) -> ServerSettings:
    """The settings of `environment` (the process's own by default).

    MemoryConfigurationError is one line with the variable, the problem and the allowed range.
    """
    read = reader(environment)
    return ServerSettings(
        memory=load_settings(environment),
        auth=_auth(read),
        host=read.text("HOST") or "127.0.0.1",
        port=read.whole("PORT", 8000, low=0, high=65_535),
        max_body_bytes=read.whole("MAX_BODY_BYTES", 4 << 20, low=1024, high=1 << 30),
        max_concurrency=read.whole("MAX_CONCURRENCY", 512, low=1, high=65_536),
        lease_seconds=read.whole("LEASE_SECONDS", 60, low=3, high=3600),
        client_seconds=read.whole("CLIENT_TIMEOUT_SECONDS", 60, low=1, high=3600),
        model_context_tokens=read.whole("MODEL_CONTEXT_TOKENS", 0, low=0, high=100_000_000),
        allow_full_memory=read.flag("ALLOW_FULL_MEMORY", False),
        retriever=read.text("RETRIEVER"),
        agent_tools=read.text("AGENT_TOOLS"),
        metrics_token=read.text("METRICS_TOKEN"),
    )


def _auth(read: Reader) -> AuthSettings:
    if read.choice("AUTH_MODE", MODES, "none") == "none":
        return AuthSettings()
    source = _source(read)
    key = _public_key(read) if source == "AUTH_PUBLIC_KEY_FILE" else None
    allowed = SYMMETRIC if source == "AUTH_SECRET" else _fitting(read, key)
    algorithms = _algorithms(read, allowed, default=_default_algorithms(source, allowed))
    secret = read.text("AUTH_SECRET")
    if secret is not None:
        _require_long(read, secret, algorithms)
    return AuthSettings(
        "jwt",
        secret=secret,
        public_key=key,
        jwks_url=_jwks_url(read),
        algorithms=algorithms,
        issuer=read.text("AUTH_ISSUER"),
        audience=read.text("AUTH_AUDIENCE"),
        user_id_claim=_claim(read, "AUTH_USER_ID_CLAIM", "sub"),
        tenants_claim=_claim(read, "AUTH_TENANTS_CLAIM", "tenants"),
        role_claim=_claim(read, "AUTH_ROLE_CLAIM", "role"),
        projects_claim=_claim(read, "AUTH_PROJECTS_CLAIM", "projects"),
        leeway_seconds=read.whole("AUTH_LEEWAY_SECONDS", 30, low=0, high=300),
    )


def _source(read: Reader) -> str:
    given = [name for name in _SOURCES if read.text(name) is not None]
    if len(given) != 1:
        raise read.error("AUTH_MODE", f"jwt needs exactly one of {', '.join(_SOURCES)}")
    return given[0]


def _public_key(read: Reader) -> str:
    try:
        text = Path(read.text("AUTH_PUBLIC_KEY_FILE") or "").read_text("ascii")
    except (OSError, UnicodeError):
        raise read.error("AUTH_PUBLIC_KEY_FILE", "must name a readable PEM file") from None
    if "PRIVATE" in text:
        raise read.error("AUTH_PUBLIC_KEY_FILE", "must hold a public key, not a private one")
    return text


def _fitting(read: Reader, key: str | None) -> tuple[str, ...]:
    """The algorithms that fit a PEM key; every one with a public key where it is None."""
    if key is None:
        return ASYMMETRIC
    from muniment.server.keys import algorithms_of  # the extra is needed only here

    try:
        return algorithms_of(key)
    except ValueError as error:
        raise read.error("AUTH_PUBLIC_KEY_FILE", str(error)) from None


def _default_algorithms(source: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    return allowed if source == "AUTH_JWKS_URL" else allowed[:1]


def _algorithms(
    read: Reader, allowed: tuple[str, ...], default: tuple[str, ...]
) -> tuple[str, ...]:
    text = read.text("AUTH_ALGORITHMS")
    if text is None:
        return default
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names or not set(names) <= set(allowed):
        raise read.error(
            "AUTH_ALGORITHMS", f"must be a list out of {', '.join(allowed)}, which fit the key"
        )
    return names


def _require_long(read: Reader, secret: str, algorithms: tuple[str, ...]) -> None:
    least = max(_SHORTEST_SECRET[name] for name in algorithms)
    if len(secret.encode()) < least:
        raise read.error("AUTH_SECRET", f"must have at least {least} bytes")
    if "-----BEGIN" in secret:
        raise read.error("AUTH_SECRET", "must be a secret, not a key in PEM form")


def _jwks_url(read: Reader) -> str | None:
    url = read.text("AUTH_JWKS_URL")
    if url is not None and not url.startswith(("https://", "http://")):
        raise read.error("AUTH_JWKS_URL", "must be an http:// or https:// URL")
    return url


def _claim(read: Reader, name: str, default: str) -> str:
    claim = read.text(name) or default
    if len(claim) > MAX_IDENTIFIER:
        raise read.error(name, f"must have at most {MAX_IDENTIFIER} characters")
    return claim
