"""Records the tools that an agent of the OpenAI Agents SDK calls.

`async with AlmanacRunHooks(almanac) as hooks: await Runner.run(agent, question, hooks=hooks)`. Needs `openai-agents`.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import _call
from ._aio import AsyncAlmanac
from ._sync import Almanac
from ._timed import is_cancellation, outcome_of

try:
    from agents import RunHooks
except ImportError as error:
    raise ImportError("almanac_client.openai_agents needs openai-agents: pip install openai-agents") from error


class AlmanacRunHooks(RunHooks):  # type: ignore[misc,type-arg,unused-ignore]
    """Tells Almanac how long each tool took. What a tool makes of its own failure is its result, so is a success.

    Of a tool that ends the run by its exception the SDK tells nothing: it is recorded where the run is within
    `async with` of the hooks, for all tools that had begun and not ended; so each such run has hooks of its own.
    """

    def __init__(self, almanac: AsyncAlmanac, *, session_id: str | None = None) -> None:
        """Raises a TypeError for a client without an event loop."""
        super().__init__()
        if isinstance(almanac, Almanac):
            raise TypeError("the hooks take an AsyncAlmanac")
        self._almanac = almanac
        self._session_id = session_id
        self._running: dict[Any, _Running] = {}
        self._is_entered = False

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        """A tool begins."""
        key, running = _key(context, tool), _Running(tool.name, time.perf_counter())
        self._running[key] = running
        with suppress(TypeError):
            # Its end may never be told.
            weakref.finalize(context, _forget, self._running, key, running)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        """A tool has answered."""
        running = self._running.pop(_key(context, tool), None)
        if running is not None:
            await self._record(running, None)

    async def __aenter__(self) -> AlmanacRunHooks:
        """Raises a TypeError for hooks of another run, whose tools this one's end would end."""
        if self._is_entered:
            raise TypeError("these hooks are of a run that goes on; make others for each run")
        self._is_entered = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_entered = False
        left = list(self._running.values())
        self._running.clear()
        if error is not None:
            # The SDK wraps what a tool raised.
            await asyncio.gather(*(self._record(running, error.__cause__ or error) for running in left))

    async def _record(self, running: _Running, error: BaseException | None) -> None:
        took_ms = (time.perf_counter() - running.started) * 1000
        more = {"session_id": self._session_id}
        execution = _call.execution(running.tool_name, took_ms, outcome_of(error), more)
        await self._almanac._bookkeeper.record(execution, is_awaited=not is_cancellation(error))


@dataclass(frozen=True, eq=False)
class _Running:
    """A call that goes on, since a moment of the performance counter."""

    tool_name: str
    started: float


def _forget(all_running: dict[Any, _Running], key: Any, running: _Running) -> None:
    if all_running.get(key) is running:
        del all_running[key]


def _key(context: Any, tool: Any) -> Any:
    """What tells calls apart that run at once."""
    return getattr(context, "tool_call_id", None) or (id(context), tool.name)


__all__ = ["AlmanacRunHooks"]
