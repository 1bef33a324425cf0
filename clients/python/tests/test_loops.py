"""Clients whose event loop, or whose connections, are gone."""

from __future__ import annotations

import asyncio
import threading

import pytest

from almanac_client import Almanac, AsyncAlmanac


def test_a_client_serves_one_loop_after_the_other(url: str) -> None:
    almanac = AsyncAlmanac(url)

    @almanac.timed
    async def py_loops() -> int:
        return 7

    async def samples() -> int:
        return int((await almanac.timing.estimate("py_loops"))["samples"])

    assert [asyncio.run(py_loops()) for _ in range(3)] == [7, 7, 7]
    assert asyncio.run(samples()) == 3
    assert len(almanac._http._clients) == 1
    asyncio.run(almanac.aclose())


def test_a_client_serves_loops_side_by_side(url: str) -> None:
    almanac = AsyncAlmanac(url)
    barrier = threading.Barrier(2, timeout=30)
    found: list[str] = []

    async def ask() -> None:
        for _ in range(3):
            barrier.wait()
            found.append((await almanac.tools.get("web_search"))["name"])

    threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["web_search"] * 6


def test_a_tool_outlives_its_client(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with Almanac(url) as almanac:

        @almanac.timed(tool="py_closed")
        def tool() -> int:
            return 7

    assert tool() == 7
    assert "no estimate of py_closed" in caplog.text
    assert "a call of py_closed is not recorded" in caplog.text


def test_a_tool_with_a_loop_outlives_its_client(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def later() -> int:
        return 7

    async def closed() -> AsyncAlmanac:
        async with AsyncAlmanac(url) as almanac:
            return almanac

    almanac = asyncio.run(closed())
    assert asyncio.run(almanac.timed(tool="py_closed")(later)()) == 7
    assert "the client is closed" in caplog.text
    with pytest.raises(RuntimeError, match="the client is closed"):
        asyncio.run(almanac.tools.get("web_search"))
