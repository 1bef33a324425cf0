"""Adapters, where their frameworks are installed."""

from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace

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
