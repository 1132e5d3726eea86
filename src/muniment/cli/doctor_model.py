"""The doctor's look at the language model: whether one is named, usable and listening."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from urllib.parse import urlsplit

from muniment.cli.diagnosis import Finding, tried
from muniment.cli.exits import one_line
from muniment.settings import ModelSettings, load_settings

_NONE = "none: MUNIMENT_MODEL names one; remembering and recall need none"
_PORTS = {"http": 80, "https": 443}
_SECONDS = 3.0


def model_findings() -> list[Finding]:
    """What there is to say about the model of the settings; nothing is sent to it."""
    settings = tried(load_settings)
    if isinstance(settings, Exception):
        return []  # said already, where the store is looked for
    if settings.model is None:
        return [Finding("model", "ok", _NONE)]
    return [_model(settings.model)]


def _model(model: ModelSettings) -> Finding:
    if find_spec("openai") is None:
        detail = f"{model.name}: needs the extra openai"
        return Finding("model", "failed", detail, "pip install 'muniment[openai]'")
    if model.base_url is None:
        return Finding("model", "ok", f"{model.name}, where OpenAI's client looks by default")
    server = tried(lambda: _address(model.base_url or ""))
    if isinstance(server, Exception):
        advice = "write it as https://HOST/v1"
        return Finding("model", "failed", "MUNIMENT_MODEL_BASE_URL: must be an http URL", advice)
    place = f"{model.name} at {server[0]}, port {server[1]}"
    failure = tried(lambda: socket.create_connection(server, timeout=_SECONDS).close())
    if isinstance(failure, Exception):
        advice = "check MUNIMENT_MODEL_BASE_URL, and that it runs; without it, recall goes on"
        return Finding("model", "failed", f"{place}: {one_line(failure)}", advice)
    return Finding("model", "ok", f"{place}: listening")


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or _PORTS[parts.scheme]
