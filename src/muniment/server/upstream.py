"""The language model behind the service: any endpoint of OpenAI's protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from muniment.server.problems import Problem
from muniment.settings import ModelSettings

Message = dict[str, Any]

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_MOST_BYTES = 16 << 20
_RETRY_SECONDS = 5
_LONGEST_RETRY = 3600
_REFUSED = (400, 404, 413, 415, 422)


class ChatModel:
    """A chat-completions endpoint. Failures are Problems that repeat nothing the model said:
    502 broken, 503 refuses our key or is overloaded, 504 too slow, 429 too many requests, 422
    the request was refused."""

    def __init__(self, client: httpx2.AsyncClient, settings: ModelSettings) -> None:
        base = (settings.base_url or DEFAULT_BASE_URL).rstrip("/")
        self.name = settings.name
        self._url = f"{base}/chat/completions"
        self._client = client
        self._headers = {"Authorization": f"Bearer {settings.api_key or 'none'}"}
        self._timeout = settings.timeout_seconds

    async def complete(self, messages: Sequence[Message], options: Message) -> Message:
        """The whole reply, which has a choice with a message."""
        body = b""
        async with self._sent(messages, options) as response:
            async for part in response.aiter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise _broken()
        reply = _object(body)
        if not isinstance(first_choice(reply).get("message"), dict):
            raise _broken()
        return reply

    async def stream(self, messages: Sequence[Message], options: Message) -> AsyncIterator[Message]:
        """The reply's chunks; Problem where it breaks off before its end."""
        finished = False
        async with self._sent(messages, {**options, "stream": True}) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data:"):
                    continue
                data = line[5:].strip()
                if data == "[DONE]":
                    return
                chunk = _object(data)
                if "error" in chunk:
                    raise _broken()
                finished = finished or first_choice(chunk).get("finish_reason") is not None
                yield chunk
        if not finished:
            raise _broken()

    @asynccontextmanager
    async def _sent(
        self, messages: Sequence[Message], options: Message
    ) -> AsyncIterator[httpx2.Response]:
        request = self._client.build_request(
            "POST",
            self._url,
            json={**options, "model": self.name, "messages": list(messages)},
            headers=self._headers,
            timeout=self._timeout,
        )
        try:
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code != 200:
                    raise _refusal(response)
                yield response
            finally:
                await response.aclose()
        except httpx2.PoolTimeout:
            raise Problem(503, "model-busy", "too many calls of the model", retry_after=1) from None
        except httpx2.TimeoutException:
            raise Problem(504, "model-timeout", "the model took too long") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError):
            raise _broken() from None


def first_choice(reply: Message) -> Message:
    """The first choice of a reply or a chunk; empty where there is none."""
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _object(text: str | bytes) -> Message:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise _broken() from None
    if not isinstance(value, dict):
        raise _broken()
    return value


def _broken() -> Problem:
    return Problem(502, "model-broken", "the model's answer broke off or cannot be read")


def _refusal(response: httpx2.Response) -> Problem:
    status = response.status_code
    if status == 429:
        wait = _retry_after(response)
        return Problem(429, "model-rate", "the model takes no more requests now", retry_after=wait)
    if status in _REFUSED:
        return Problem(422, "model-refused", f"the model refused the request ({status})")
    if status in (401, 403):
        return Problem(503, "model-key", "the model refuses the service's key", retry_after=60)
    if status in (503, 529):
        wait = _retry_after(response)
        return Problem(503, "model-busy", "the model is overloaded", retry_after=wait)
    return Problem(502, "model-broken", f"the model failed ({status})")


def _retry_after(response: httpx2.Response) -> int:
    stated = response.headers.get("retry-after", "")
    return min(int(stated[:9]), _LONGEST_RETRY) if stated.isdigit() else _RETRY_SECONDS
