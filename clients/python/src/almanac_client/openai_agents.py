"""Records the tools that an agent of the OpenAI Agents SDK calls.

`Runner.run(agent, question, hooks=AlmanacRunHooks(almanac))`. Needs `openai-agents`.
"""

from __future__ import annotations

import time
from typing import Any

from . import _call
from ._aio import AsyncAlmanac

try:
    from agents import RunHooks
except ImportError as error:
    raise ImportError("almanac_client.openai_agents needs openai-agents: pip install openai-agents") from error


class AlmanacRunHooks(RunHooks):  # type: ignore[misc,type-arg,unused-ignore]
    """Tells Almanac how long each tool took. What a tool makes of its own failure is its result, so is a success."""

    def __init__(self, almanac: AsyncAlmanac, *, session_id: str | None = None) -> None:
        super().__init__()
        self._almanac = almanac
        self._session_id = session_id
        self._running: dict[Any, float] = {}

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool begins."""
        self._running[_key(context, tool)] = time.perf_counter()

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """A tool has answered."""
        started = self._running.pop(_key(context, tool), None)
        if started is None:
            return
        took_ms = (time.perf_counter() - started) * 1000
        execution = _call.execution(tool.name, took_ms, "success", {"session_id": self._session_id})
        await self._almanac._bookkeeper.record(execution)


def _key(context: Any, tool: Any) -> Any:
    """What tells calls apart that run at once."""
    return getattr(context, "tool_call_id", None) or (id(context), tool.name)


__all__ = ["AlmanacRunHooks"]
