"""The connections: one set of them or, as a set lives no longer than its event loop, one for each loop."""

from __future__ import annotations

import asyncio

import httpx

from ._address import Address


class Http:
    """Connections without an event loop."""

    def __init__(self, source: httpx.Client | Address, timeout: float) -> None:
        """`source` is what makes them, or a client that is given. `timeout` is in seconds, for each wait."""
        self._owns = isinstance(source, Address)
        self._client = self._made(source, timeout) if isinstance(source, Address) else source

    @staticmethod
    def _made(address: Address, timeout: float) -> httpx.Client:
        transport = None if address.socket is None else httpx.HTTPTransport(uds=address.socket)
        return httpx.Client(**address.options(), timeout=timeout, transport=transport)

    def client(self) -> httpx.Client:
        """What sends requests here."""
        return self._client

    def close(self) -> None:
        """Closes what was not given."""
        if self._owns:
            self._client.close()


class AsyncHttp:
    """Connections with event loops."""

    def __init__(self, source: httpx.AsyncClient | Address, timeout: float) -> None:
        """`source` is what makes them, or a client that is given. `timeout` is in seconds, for each wait."""
        self._source = source
        self._timeout = timeout
        self._clients: dict[asyncio.AbstractEventLoop | None, httpx.AsyncClient] = {}
        self._is_closed = False

    def client(self) -> httpx.AsyncClient:
        """What sends requests in the running loop. Raises a RuntimeError after `aclose`."""
        if not isinstance(self._source, Address):
            return self._source
        if self._is_closed:
            raise RuntimeError("the client is closed")
        loop = _running_loop()
        if loop not in self._clients:
            self._forget_closed_loops()
            self._clients[loop] = self._made(self._source)
        return self._clients[loop]

    def _made(self, address: Address) -> httpx.AsyncClient:
        transport = None if address.socket is None else httpx.AsyncHTTPTransport(uds=address.socket)
        return httpx.AsyncClient(**address.options(), timeout=self._timeout, transport=transport)

    async def aclose(self) -> None:
        """Closes what was not given. Connections of other loops go with their loops."""
        self._is_closed = True
        own = self._clients.pop(_running_loop(), None)
        self._clients.clear()
        if own is not None:
            await own.aclose()

    def _forget_closed_loops(self) -> None:
        for loop in [loop for loop in list(self._clients) if loop is not None and loop.is_closed()]:
            del self._clients[loop]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        # Another library's loop, such as one of trio.
        return None
