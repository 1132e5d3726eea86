"""The service's settings: one clear line for what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from muniment.errors import MemoryConfigurationError
from muniment.server.running import warn
from muniment.server.settings import load_server_settings
from tests.doubles.service import SECRET

JWT = {"MUNIMENT_AUTH_MODE": "jwt"}


def _pem(folder: Path, key: Any, *, private: bool = False) -> str:
    path = folder / "key.pem"
    text: bytes = (
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        if private
        else key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    path.write_bytes(text)
    return str(path)


def test_without_any_variable_it_serves_this_machine_alone() -> None:
    loaded = load_server_settings({})
    assert (loaded.host, loaded.port, loaded.auth.mode) == ("127.0.0.1", 8000, "none")
    assert loaded.on_loopback


def test_the_other_prefix_is_read_where_ours_is_unset() -> None:
    loaded = load_server_settings({"HARBORRAG_PORT": "9000", "HARBORRAG_AUTH_MODE": "none"})
    assert loaded.port == 9000


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"PORT": "65536"}, "MUNIMENT_PORT: must be a whole number from 0 to 65535"),
        ({"AUTH_MODE": "basic"}, "MUNIMENT_AUTH_MODE: must be one of none, jwt"),
        ({"AUTH_MODE": "jwt"}, "exactly one of AUTH_SECRET, AUTH_PUBLIC_KEY_FILE, AUTH_JWKS_URL"),
        (
            {"AUTH_MODE": "jwt", "AUTH_SECRET": SECRET, "AUTH_JWKS_URL": "https://x.example"},
            "exactly one of",
        ),
        ({"AUTH_MODE": "jwt", "AUTH_SECRET": "short"}, "AUTH_SECRET: must have at least 32 bytes"),
        (
            {"AUTH_MODE": "jwt", "AUTH_SECRET": SECRET, "AUTH_ALGORITHMS": "HS512"},
            "at least 64 bytes",
        ),
        (
            {"AUTH_MODE": "jwt", "AUTH_SECRET": SECRET, "AUTH_ALGORITHMS": "HS256,RS256"},
            "AUTH_ALGORITHMS: must be a list out of HS256",
        ),
        ({"AUTH_MODE": "jwt", "AUTH_SECRET": SECRET, "AUTH_ALGORITHMS": "none"}, "AUTH_ALGORITHMS"),
        (
            {"AUTH_MODE": "jwt", "AUTH_JWKS_URL": "https://x.example", "AUTH_ALGORITHMS": "HS256"},
            "AUTH_ALGORITHMS",
        ),
        ({"AUTH_MODE": "jwt", "AUTH_JWKS_URL": "file:///etc/passwd"}, "must be an http"),
        (
            {"AUTH_MODE": "jwt", "AUTH_SECRET": SECRET, "AUTH_LEEWAY_SECONDS": "301"},
            "from 0 to 300",
        ),
        ({"AUTH_MODE": "jwt", "AUTH_PUBLIC_KEY_FILE": "/nowhere"}, "must name a readable PEM file"),
        ({"MAX_CONCURRENCY": "0"}, "MUNIMENT_MAX_CONCURRENCY: must be a whole number from 1"),
        ({"MAX_BODY_BYTES": "many"}, "MUNIMENT_MAX_BODY_BYTES: must be a whole number"),
    ],
)
def test_a_bad_value_is_one_line_with_variable_problem_and_range(
    values: dict[str, str], said: str
) -> None:
    environment = {f"MUNIMENT_{name}": value for name, value in values.items()}
    with pytest.raises(MemoryConfigurationError) as refused:
        load_server_settings(environment)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert SECRET not in str(refused.value)


def test_the_algorithms_follow_the_kind_of_the_key(tmp_path: Path) -> None:
    for key, algorithms in (
        (rsa.generate_private_key(65537, 2048), ("RS256",)),
        (ec.generate_private_key(ec.SECP384R1()), ("ES384",)),
    ):
        environment = {**JWT, "MUNIMENT_AUTH_PUBLIC_KEY_FILE": _pem(tmp_path, key)}
        assert load_server_settings(environment).auth.algorithms == algorithms
        with pytest.raises(MemoryConfigurationError, match="AUTH_ALGORITHMS"):
            load_server_settings({**environment, "MUNIMENT_AUTH_ALGORITHMS": "HS256"})


def test_a_private_or_weak_key_is_refused(tmp_path: Path) -> None:
    strong, weak = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 1024)  # noqa: S505
    for path, said in (
        (_pem(tmp_path, strong, private=True), "not a private one"),
        (_pem(tmp_path, weak), "at least 2048 bits"),
    ):
        _pem(tmp_path, strong if "private" in said else weak, private="private" in said)
        with pytest.raises(MemoryConfigurationError, match=said):
            load_server_settings({**JWT, "MUNIMENT_AUTH_PUBLIC_KEY_FILE": path})


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    environment = {**JWT, "MUNIMENT_AUTH_SECRET": SECRET, "MUNIMENT_METRICS_TOKEN": "token of it"}
    shown = repr(load_server_settings(environment))
    assert SECRET not in shown
    assert "token of it" not in shown


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "AUTH_MODE=none: this machine"),
        ({"MUNIMENT_HOST": "0.0.0.0"}, "AUTH_MODE=none: EVERYONE"),  # noqa: S104
        ({"MUNIMENT_DATABASE_URL": "memory://"}, "development only"),
        ({**JWT, "MUNIMENT_AUTH_SECRET": SECRET}, "AUTH_ISSUER or AUTH_AUDIENCE is not set"),
    ],
)
def test_what_is_fit_for_development_only_is_said_at_the_start(
    environment: dict[str, str], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    warn(load_server_settings(environment))
    assert said in caplog.text
