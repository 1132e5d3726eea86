"""Tools that an operator may bring along."""

from __future__ import annotations

from langchain_core.tools import tool


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


TOOLS = (weather,)
