"""A daemon that hangs: tools neither wait for it for long, nor are they kept from being cancelled."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from almanac_client import Almanac, AsyncAlmanac, Budget

SHORT = Budget(estimate=0.1, record=0.1)


@pytest.fixture
def hung() -> Iterator[str]:
    """Where connections are taken, and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_a_daemon_that_hangs_delays_a_tool_for_its_budget(hung: str, caplog: pytest.LogCaptureFixture) -> None:
    @Almanac(hung, timeout=5.0, budget=SHORT).timed
    def tool() -> int:
        return 7

    @AsyncAlmanac(hung, timeout=5.0, budget=SHORT).timed
    async def later() -> int:
        return 7

    begun = time.monotonic()
    assert (tool(), asyncio.run(later())) == (7, 7)
    assert time.monotonic() - begun < 4.0
    assert caplog.text.count("is not recorded") == 2


class Daemon:
    """Answers estimates at once, and records when it is let."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.recorded: list[bytes] = []

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """The answer to a request."""
        if request.url.path == "/v1/executions":
            self.asked.set()
            await self.may_answer.wait()
            self.recorded.append(request.content)
        return httpx.Response(200, json={"timing": {}, "recorded": 1})

    def client(self) -> AsyncAlmanac:
        """A client of it."""
        http = httpx.AsyncClient(transport=httpx.MockTransport(self.answer), base_url="http://x")
        return AsyncAlmanac(http=http, budget=Budget(record=60.0))


def test_a_tool_that_is_cancelled_ends_before_it_is_recorded() -> None:
    async def run() -> None:
        daemon, begun = Daemon(), asyncio.Event()
        async with daemon.client() as almanac:

            @almanac.timed
            async def tool() -> None:
                begun.set()
                await asyncio.Event().wait()

            running = asyncio.create_task(tool())
            await begun.wait()
            running.cancel()
            await asyncio.wait([running], timeout=30)
            assert running.cancelled()
            assert daemon.recorded == []
            daemon.may_answer.set()
        assert [b'"cancelled"' in body for body in daemon.recorded] == [True]

    asyncio.run(run())


def test_a_tool_that_is_cancelled_while_it_is_recorded_ends_and_is_recorded() -> None:
    async def run() -> None:
        daemon = Daemon()
        async with daemon.client() as almanac:

            @almanac.timed
            async def tool() -> None: ...

            running = asyncio.create_task(tool())
            await daemon.asked.wait()
            running.cancel()
            await asyncio.wait([running], timeout=30)
            assert running.cancelled()
            daemon.may_answer.set()
        assert [b'"success"' in body for body in daemon.recorded] == [True]

    asyncio.run(run())


def test_a_record_that_is_lost_with_its_loop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def cancelled() -> None:
        daemon = Daemon()
        context = daemon.client().call("lost")
        await context.__aenter__()
        await context.__aexit__(asyncio.CancelledError, asyncio.CancelledError(), None)
        await daemon.asked.wait()

    asyncio.run(cancelled())
    assert "a call of lost is not recorded: the event loop ends" in caplog.text
