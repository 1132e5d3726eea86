"""Adapters of the model port."""

from __future__ import annotations

import sys
from typing import Any, cast

from muniment.errors import MemoryConfigurationError
from muniment.ports import MemoryModel

_LANGCHAIN = "langchain_core.language_models"


def as_memory_model(model: object) -> MemoryModel:
    """`model` itself where it is a MemoryModel; a LangChain `BaseChatModel` is wrapped.

    LangChain is not imported for it: its module is there already when such an object is.
    MemoryConfigurationError for anything else.
    """
    if all(
        callable(getattr(model, name, None)) for name in ("generate_text", "generate_structured")
    ):
        return cast(MemoryModel, model)
    if _is_chat_model(model):
        from muniment.models.langchain import LangChainModel

        return LangChainModel(cast(Any, model))
    raise MemoryConfigurationError(
        f"model: must be a MemoryModel or a LangChain BaseChatModel, not {type(model).__name__}"
    )


def _is_chat_model(model: object) -> bool:
    loaded = sys.modules.get(_LANGCHAIN)
    return loaded is not None and isinstance(model, loaded.BaseChatModel)
