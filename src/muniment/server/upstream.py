"""The language model behind the service: any endpoint of OpenAI's protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout
from aiohttp.client_exceptions import ServerDisconnectedError

from muniment.server.problems import Problem
from muniment.settings import ModelSettings

Message = dict[str, Any]

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_OK = 200
_MOST_BYTES = 16 << 20
_LINE_BYTES = 1 << 20
_CONNECT_SECONDS = 10.0
_DRAIN_SECONDS = 0.2
_RETRY_SECONDS = 5
_LONGEST_RETRY = 3600
_REFUSED = (400, 404, 413, 415, 422)


class ChatModel:
    """A chat-completions endpoint. Failures are Problems that repeat nothing the model said:
    502 broken, 503 refuses our key or is overloaded, 504 too slow, 429 too many requests, 422
    the request was refused. The configured time bounds a whole reply, or a silence in a stream."""

    def __init__(self, client: ClientSession, settings: ModelSettings) -> None:
        base = (settings.base_url or DEFAULT_BASE_URL).rstrip("/")
        self.name = settings.name
        self._url = f"{base}/chat/completions"
        self._client = client
        self._headers = {"Authorization": f"Bearer {settings.api_key or 'none'}"}
        seconds = settings.timeout_seconds
        self._whole = ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)
        self._silence = ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=seconds)

    async def complete(self, messages: Sequence[Message], options: Message) -> Message:
        """The whole reply, which has a choice with a message."""
        body = b""
        async with self._sent(messages, options, self._whole) as response:
            async for part in response.content.iter_any():
                body += part
                if len(body) > _MOST_BYTES:
                    raise _broken()
        reply = _object(body)
        if not isinstance(first_choice(reply).get("message"), dict):
            raise _broken()
        return reply

    async def stream(
        self, messages: Sequence[Message], options: Message
    ) -> AsyncIterator[tuple[bytes, Message]]:
        """The reply's chunks, each as it came, on one line, and read; Problem where they break
        off before the end."""
        finished = False
        asked = {**options, "stream": True}
        async with self._sent(messages, asked, self._silence) as response:
            async for data in _events(response):
                if data == b"[DONE]":
                    await _drain(response)
                    return
                chunk = _object(data.decode())
                if "error" in chunk:
                    raise _broken()
                finished = finished or first_choice(chunk).get("finish_reason") is not None
                yield data, chunk
        if not finished:
            raise _broken()

    @asynccontextmanager
    async def _sent(
        self, messages: Sequence[Message], options: Message, limits: ClientTimeout
    ) -> AsyncIterator[ClientResponse]:
        body = {**options, "model": self.name, "messages": list(messages)}
        try:
            async with await self._posted(body, limits) as response:
                if response.status != _OK:
                    raise _refusal(response)
                yield response
        except TimeoutError:
            raise Problem(504, "model-timeout", "the model took too long") from None
        except (ClientError, ValueError):
            raise _broken() from None

    async def _posted(self, body: Message, limits: ClientTimeout) -> ClientResponse:
        """The response's head. A kept connection that the model had closed meanwhile is replaced
        once: nothing was answered on it."""
        try:
            return await self._post(body, limits)
        except ServerDisconnectedError:
            return await self._post(body, limits)

    async def _post(self, body: Message, limits: ClientTimeout) -> ClientResponse:
        return await self._client.post(
            self._url, json=body, headers=self._headers, timeout=limits, allow_redirects=False
        )


async def _events(response: ClientResponse) -> AsyncIterator[bytes]:
    """What follows `data:` on each line that begins so."""
    held = b""
    async for part in response.content.iter_any():
        *lines, held = (held + part).split(b"\n")
        if len(held) > _LINE_BYTES:
            raise _broken()
        for line in lines:
            if line.startswith(b"data:"):
                yield _one_line(line[5:])
    if held.startswith(b"data:"):
        yield _one_line(held[5:])


def _one_line(data: bytes) -> bytes:
    """`data` without what a client would read as the end of a line; in JSON that is a space."""
    return data.strip().replace(b"\r", b" ")


async def _drain(response: ClientResponse) -> None:
    """Read on to the end, which is there already, so that the connection can be used again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            await response.content.readany()


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


def _refusal(response: ClientResponse) -> Problem:
    status = response.status
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


def _retry_after(response: ClientResponse) -> int:
    stated = response.headers.get("retry-after", "")
    return min(int(stated[:9]), _LONGEST_RETRY) if stated.isdigit() else _RETRY_SECONDS
