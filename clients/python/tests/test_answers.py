"""Answers that the daemon cannot have given: they are told as such, and keep no tool from running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from almanac_client import Almanac, AlmanacAnswerError, AlmanacRefusedError, AsyncAlmanac

PAGE = "<html>A proxy's page</html>"

#: What is answered with 200.
NO_ANSWERS = ["", PAGE, "[]", "{}", "null", "7", '{"timing": null}', '{"timing": 1}', "\udc80"]

#: What is refused without a problem document of the daemon.
NO_PROBLEMS = [
    "",
    PAGE,
    "[]",
    "{}",
    '{"errors": null}',
    '{"errors": 7, "near": {}}',
    '{"errors": [1], "near": [2]}',
]


def replies(status: int, text: str) -> Callable[[httpx.Request], httpx.Response]:
    """Gives the same answer to every request."""
    content = text.encode(errors="surrogateescape")
    return lambda request: httpx.Response(status, content=content)


def client(status: int, text: str) -> Almanac:
    """A client of something that answers so."""
    return Almanac(http=httpx.Client(transport=httpx.MockTransport(replies(status, text)), base_url="http://x"))


def async_client(status: int, text: str) -> AsyncAlmanac:
    """The same with an event loop."""
    transport = httpx.MockTransport(replies(status, text))
    return AsyncAlmanac(http=httpx.AsyncClient(transport=transport, base_url="http://x"))


@pytest.mark.parametrize("text", NO_ANSWERS)
def test_an_answer_that_is_none_is_an_error_of_its_own(text: str) -> None:
    with pytest.raises(AlmanacAnswerError, match="is that the daemon") as told:
        client(200, text).timing.estimate("x")
    assert (told.value.status, told.value.code) == (200, "not-almanac")


@pytest.mark.parametrize("text", ["null", "[]", "{}", '{"memories": null, "items": {}}'])
@pytest.mark.parametrize(
    "ask",
    [
        lambda to: list(to.memory.each("documents")),
        lambda to: to.memory.search("documents"),
        lambda to: to.memory.history("x"),
        lambda to: to.memory.thread("x"),
        lambda to: to.sessions(),
        lambda to: to.tools.list(),
    ],
)
def test_a_page_without_its_list_is_none(ask: Callable[[Almanac], Any], text: str) -> None:
    with pytest.raises(AlmanacAnswerError, match="is that the daemon"):
        ask(client(200, text))


def test_an_answer_that_cannot_be_unpacked_is_none() -> None:
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip"))
    )
    almanac = Almanac(http=httpx.Client(transport=transport, base_url="http://x"))
    with pytest.raises(AlmanacAnswerError, match="is that the daemon"):
        almanac.timing.estimate("x")


@pytest.mark.parametrize("text", NO_PROBLEMS)
def test_a_refusal_that_says_nothing_is_a_refusal(text: str) -> None:
    with pytest.raises(AlmanacRefusedError) as refused:
        client(404, text).timing.estimate("x")
    assert (refused.value.status, refused.value.code, refused.value.errors) == (404, "not-almanac", [])


@pytest.mark.parametrize(("status", "text"), [(200, text) for text in NO_ANSWERS] + [(404, '{"errors": null}')])
def test_a_tool_runs_whatever_is_answered(status: int, text: str, caplog: pytest.LogCaptureFixture) -> None:
    @client(status, text).timed
    def tool() -> int:
        return 7

    @async_client(status, text).timed
    async def later() -> int:
        return 7

    assert (tool(), asyncio.run(later())) == (7, 7)
    assert "no estimate of tool" in caplog.text
    assert "no estimate of later" in caplog.text


def broken(*args: Any) -> Any:
    """Something that bookkeeping needs, and that fails."""
    raise KeyError("no size")


def test_a_tool_runs_whatever_fails_in_measuring_it(caplog: pytest.LogCaptureFixture) -> None:
    almanac = client(200, '{"timing": {}, "recorded": 1}')
    measures: list[Callable[..., Any]] = [broken, lambda: {"content_length": object()}]
    for measure in measures:

        @almanac.timed(measure=measure)
        def tool() -> int:
            return 7

        assert tool() == 7
    assert "a call of tool is not measured" in caplog.text
    assert "a call of tool is not recorded" in caplog.text


def test_a_run_of_the_agents_sdk_goes_on_whatever_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("agents")
    from almanac_client.openai_agents import AlmanacRunHooks

    async def run() -> None:
        hooks = AlmanacRunHooks(async_client(200, PAGE))
        context, tool = SimpleNamespace(tool_call_id="1"), SimpleNamespace(name="oa_tool")
        await hooks.on_tool_start(context, None, tool)
        await hooks.on_tool_end(context, None, tool, "result")

    asyncio.run(run())
    assert "a call of oa_tool is not recorded" in caplog.text


def test_a_run_of_langgraph_goes_on_whatever_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("langchain_core")
    from almanac_client.langgraph import AlmanacCallbackHandler

    handler = AlmanacCallbackHandler(client(200, PAGE))
    run = uuid4()
    handler.on_tool_start({"name": "lc_tool"}, "", run_id=run)
    handler.on_tool_end("result", run_id=run)
    assert "a call of lc_tool is not recorded" in caplog.text
