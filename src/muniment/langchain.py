"""The LangChain integration (extra `langchain`) under its public name."""

from __future__ import annotations

from muniment.integrations.langchain import (
    MunimentChatMessageHistory,
    from_langchain_message,
    from_langchain_messages,
    to_langchain_message,
    to_langchain_messages,
)

__all__ = [
    "MunimentChatMessageHistory",
    "from_langchain_message",
    "from_langchain_messages",
    "to_langchain_message",
    "to_langchain_messages",
]
