"""Adapters, where their frameworks are installed."""

from __future__ import annotations

import asyncio
import gc
import json
import uuid
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from almanac_client import Almanac, AsyncAlmanac


def test_langgraph_tells_its_tools(almanac: Almanac) -> None:
    tools = pytest.importorskip("langchain_core.tools")
    from almanac_client.langgraph import AlmanacCallbackHandler

    @tools.tool  # type: ignore[untyped-decorator,unused-ignore]
    def lc_tool(fail: bool) -> str:
        """A tool."""
        if fail:
            raise ValueError("no")
        return "yes"

    session = str(uuid.uuid4())
    handler = AlmanacCallbackHandler(almanac, session_id=session)
    assert lc_tool.invoke({"fail": False}, config={"callbacks": [handler]}) == "yes"
    with pytest.raises(ValueError, match="no"):
        lc_tool.invoke({"fail": True}, config={"callbacks": [handler]})
    assert almanac.session(session)["toolHistory"] == ["lc_tool", "lc_tool"]


def test_the_agents_sdk_tells_its_tools(url: str) -> None:
    pytest.importorskip("agents")
    from almanac_client.openai_agents import AlmanacRunHooks

    async def run() -> list[str]:
        async with AsyncAlmanac(url) as almanac:
            session = str(uuid.uuid4())
            hooks = AlmanacRunHooks(almanac, session_id=session)
            context, tool = SimpleNamespace(tool_call_id="1"), SimpleNamespace(name="oa_tool")
            await hooks.on_tool_start(context, None, tool)
            await hooks.on_tool_end(context, None, tool, "result")
            return (await almanac.session(session))["toolHistory"]

    assert asyncio.run(run()) == ["oa_tool"]


def failing_agent(error: BaseException) -> Any:
    """An agent whose only tool ends its run by this."""
    agents = pytest.importorskip("agents")
    responses = pytest.importorskip("openai.types.responses")
    models = pytest.importorskip("agents.models.interface")
    agents.set_tracing_disabled(True)

    class Model(models.Model):  # type: ignore[misc,name-defined,unused-ignore]
        async def get_response(self, *args: Any, **kwargs: Any) -> Any:
            called = responses.ResponseFunctionToolCall(
                arguments="{}", call_id="1", name="oa_fails", type="function_call"
            )
            return agents.ModelResponse(output=[called], usage=agents.Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    @agents.function_tool(failure_error_function=None)  # type: ignore[untyped-decorator,unused-ignore]
    def oa_fails() -> str:
        """A tool."""
        raise error

    return agents.Agent(name="failing", model=Model(), tools=[oa_fails])


@pytest.mark.parametrize(("error", "outcome"), [(ValueError("no"), "error"), (TimeoutError(), "timeout")])
def test_a_tool_that_ends_a_run_of_the_agents_sdk_is_recorded(error: Exception, outcome: str) -> None:
    agents = pytest.importorskip("agents")
    from almanac_client.openai_agents import AlmanacRunHooks

    told: list[tuple[str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        told.extend((one["tool_name"], one["outcome"]) for one in json.loads(request.content))
        return httpx.Response(201, json={"recorded": 1})

    async def run() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://x")
        with pytest.raises(agents.UserError):
            async with AlmanacRunHooks(AsyncAlmanac(http=http)) as hooks:
                await agents.Runner.run(failing_agent(error), "go", hooks=hooks)
        assert hooks._running == {}

    asyncio.run(run())
    assert told == [("oa_fails", outcome)]


def test_a_tool_whose_end_is_not_told_is_forgotten(url: str) -> None:
    agents = pytest.importorskip("agents")
    from almanac_client.openai_agents import AlmanacRunHooks

    async def run() -> None:
        hooks = AlmanacRunHooks(AsyncAlmanac(url))
        with pytest.raises(agents.UserError):
            await agents.Runner.run(failing_agent(ValueError("no")), "go", hooks=hooks)
        gc.collect()
        assert hooks._running == {}

    asyncio.run(run())


def test_each_adapter_takes_its_own_client(url: str) -> None:
    pytest.importorskip("agents")
    pytest.importorskip("langchain_core")
    from almanac_client.langgraph import AlmanacCallbackHandler
    from almanac_client.openai_agents import AlmanacRunHooks

    with pytest.raises(TypeError, match="AsyncAlmanac"):
        AlmanacRunHooks(Almanac(url))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an Almanac"):
        AlmanacCallbackHandler(AsyncAlmanac(url))  # type: ignore[arg-type]


async def _enter_twice() -> None:
    from almanac_client.openai_agents import AlmanacRunHooks

    async with AsyncAlmanac("http://127.0.0.1:1") as almanac:
        hooks = AlmanacRunHooks(almanac)
        async with hooks:
            with pytest.raises(TypeError, match="make others for each run"):
                async with hooks:
                    pass
        async with hooks:
            pass


def test_hooks_are_of_one_run_at_a_time() -> None:
    pytest.importorskip("agents")
    asyncio.run(_enter_twice())
