"""Records the tools that a LangChain or LangGraph run calls: `graph.invoke(..., config={"callbacks": [handler]})`.

Needs `langchain-core`, which every LangGraph program has.
"""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from . import _call
from ._aio import AsyncAlmanac
from ._sync import Almanac
from ._timed import outcome_of
from .types import Outcome

try:
    from langchain_core.callbacks import BaseCallbackHandler
except ImportError as error:
    raise ImportError("almanac_client.langgraph needs langchain-core: pip install langchain-core") from error


class AlmanacCallbackHandler(BaseCallbackHandler):  # type: ignore[misc,unused-ignore]
    """Tells Almanac how long each tool took and how it came out."""

    def __init__(self, almanac: Almanac, *, session_id: str | None = None) -> None:
        """Without a session the run's `thread_id` is the session, if its metadata has one.

        Raises a TypeError for a client with an event loop.
        """
        super().__init__()
        if isinstance(almanac, AsyncAlmanac):
            raise TypeError("the handler takes an Almanac, also in a program with an event loop")
        self._almanac = almanac
        self._session_id = session_id
        self._running: dict[UUID, tuple[str, float, str | None]] = {}

    def on_tool_start(
        self,
        serialized: dict[str, Any] | None,
        input_str: str,
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A tool begins."""
        name = kwargs.get("name") or (serialized or {}).get("name")
        session = self._session_id or (metadata or {}).get("thread_id")
        if name:
            self._running[run_id] = (str(name), time.perf_counter(), None if session is None else str(session))

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool has answered; a message of the status error is an error."""
        self._ended(run_id, "error" if getattr(output, "status", None) == "error" else "success")

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool has failed."""
        self._ended(run_id, outcome_of(error))

    def _ended(self, run_id: UUID, outcome: Outcome) -> None:
        running = self._running.pop(run_id, None)
        if running is None:
            return
        name, started, session = running
        took_ms = (time.perf_counter() - started) * 1000
        self._almanac._bookkeeper.record(_call.execution(name, took_ms, outcome, {"session_id": session}))


__all__ = ["AlmanacCallbackHandler"]
