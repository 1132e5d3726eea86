"""Which objects are taken for a model."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from muniment.ports import MemoryModel


def memory_model(model: object) -> MemoryModel | None:
    """`model` where it speaks the port, a LangChain chat model behind it, or None for None.

    MemoryConfigurationError for anything else.
    """
    if model is None or callable(getattr(model, "generate_text", None)):
        return cast("MemoryModel | None", model)
    # By name, since the adapters lie outside this ring.
    return cast(MemoryModel, import_module("muniment.models").as_memory_model(model))
