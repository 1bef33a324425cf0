"""The connections: one set of them or, as a set lives no longer than its event loop, one for each loop."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx


class Http:
    """Connections without an event loop."""

    def __init__(self, given: httpx.Client | None, options: dict[str, Any]) -> None:
        self._given = given
        self._client = given if given is not None else httpx.Client(**options)

    def client(self) -> httpx.Client:
        """What sends requests here."""
        return self._client

    def close(self) -> None:
        """Closes what was not given."""
        if self._given is None:
            self._client.close()


class AsyncHttp:
    """Connections with event loops."""

    def __init__(self, given: httpx.AsyncClient | None, options: dict[str, Any]) -> None:
        self._given = given
        self._options = options
        self._clients: dict[asyncio.AbstractEventLoop | None, httpx.AsyncClient] = {}
        self._is_closed = False

    def client(self) -> httpx.AsyncClient:
        """What sends requests in the running loop. Raises a RuntimeError after `aclose`."""
        if self._given is not None:
            return self._given
        if self._is_closed:
            raise RuntimeError("the client is closed")
        loop = _running_loop()
        if loop not in self._clients:
            self._forget_closed_loops()
            self._clients[loop] = httpx.AsyncClient(**self._options)
        return self._clients[loop]

    async def aclose(self) -> None:
        """Closes what was not given. Connections of other loops go with their loops."""
        self._is_closed = True
        own = self._clients.pop(_running_loop(), None)
        self._clients.clear()
        if own is not None:
            await own.aclose()

    def _forget_closed_loops(self) -> None:
        for loop in [loop for loop in self._clients if loop is not None and loop.is_closed()]:
            del self._clients[loop]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        # Another library's loop, such as one of trio.
        return None
