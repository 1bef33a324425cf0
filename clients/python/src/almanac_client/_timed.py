"""Around a call of a tool: what it will take is asked before, what it took is recorded after.

A daemon that does not answer keeps no tool from running: it is logged, and the estimate is None.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .errors import AlmanacError
from .types import Complexity, Execution, Outcome, Timing

if TYPE_CHECKING:
    from ._aio import AsyncTimingService as AsyncTiming
    from ._sync import TimingService as SyncTiming

logger = logging.getLogger("almanac_client")

F = TypeVar("F", bound=Callable[..., Any])

#: From a call's arguments to what makes it long.
Measure = Callable[..., Complexity]


def outcome_of(error: BaseException | None) -> Outcome:
    """How a call came out that ended with this exception, or with none."""
    if error is None:
        return "success"
    if isinstance(error, (TimeoutError, asyncio.TimeoutError)):
        return "timeout"
    if isinstance(error, (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)):
        return "cancelled"
    return "error"


class OngoingCall:
    """A call that is being made."""

    def __init__(self, tool_name: str, asked: dict[str, Any], session_id: str | None) -> None:
        self.tool_name = tool_name
        #: What was said of it before; None if nobody answered.
        self.timing: Timing | None = None
        #: How it came out; told by how the block is left unless it is set.
        self.outcome: Outcome | None = None
        #: How long it took, in ms; None while it goes on.
        self.duration_ms: float | None = None
        self._asked = {name: value for name, value in asked.items() if value is not None}
        self._session_id = session_id
        self._started = 0.0

    def _question(self) -> dict[str, Any]:
        return {"tool_name": self.tool_name, **self._asked}

    def _begin(self) -> None:
        self._started = time.perf_counter()

    def _end(self, error: BaseException | None) -> Execution:
        self.duration_ms = (time.perf_counter() - self._started) * 1000
        told: Any = {
            "tool_name": self.tool_name,
            "duration_ms": round(self.duration_ms),
            "outcome": self.outcome or outcome_of(error),
        }
        for name in ("mode_name", "complexity"):
            if name in self._asked:
                told[name] = self._asked[name]
        if self._session_id is not None:
            told["session_id"] = self._session_id
        execution: Execution = told
        return execution


class _Context(AbstractContextManager[OngoingCall]):
    def __init__(self, timing: SyncTiming, call: OngoingCall) -> None:
        self._timing = timing
        self._call = call

    def __enter__(self) -> OngoingCall:
        try:
            self._call.timing = self._timing.estimate(**self._call._question())
        except AlmanacError as error:
            logger.warning("no estimate of %s: %s", self._call.tool_name, error)
        self._call._begin()
        return self._call

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        execution = self._call._end(error)
        try:
            self._timing.record(execution)
        except AlmanacError as failure:
            logger.warning("a call of %s is not recorded: %s", self._call.tool_name, failure)


class _AsyncContext(AbstractAsyncContextManager[OngoingCall]):
    def __init__(self, timing: AsyncTiming, call: OngoingCall) -> None:
        self._timing = timing
        self._call = call

    async def __aenter__(self) -> OngoingCall:
        try:
            self._call.timing = await self._timing.estimate(**self._call._question())
        except AlmanacError as error:
            logger.warning("no estimate of %s: %s", self._call.tool_name, error)
        self._call._begin()
        return self._call

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        execution = self._call._end(error)
        try:
            # A call that was cancelled is recorded all the same.
            await asyncio.shield(self._timing.record(execution))
        except AlmanacError as failure:
            logger.warning("a call of %s is not recorded: %s", self._call.tool_name, failure)


def _ongoing(
    tool_name: str,
    mode_name: str | None = None,
    complexity: Complexity | None = None,
    timeout_ms: int | None = None,
    session_id: str | None = None,
) -> OngoingCall:
    asked = {"mode_name": mode_name, "complexity": complexity, "timeout_ms": timeout_ms}
    return OngoingCall(tool_name, asked, session_id)


class Timed:
    """The decorator and the context of a client without an event loop."""

    def __init__(self, timing: SyncTiming) -> None:
        self._timing = timing

    def call(self, tool_name: str, **about: Any) -> AbstractContextManager[OngoingCall]:
        """A context around a call. About: mode_name, complexity, timeout_ms, session_id."""
        return _Context(self._timing, _ongoing(tool_name, **about))

    @overload
    def decorate(self, function: F, /) -> F: ...
    @overload
    def decorate(
        self,
        *,
        tool: str | None = None,
        measure: Measure | None = None,
        on_estimate: Callable[[OngoingCall], None] | None = None,
        **about: Any,
    ) -> Callable[[F], F]: ...
    def decorate(  # type: ignore[misc]  # `about` is not `function`
        self,
        function: Any = None,
        /,
        *,
        tool: str | None = None,
        measure: Measure | None = None,
        on_estimate: Callable[[OngoingCall], None] | None = None,
        **about: Any,
    ) -> Any:
        """Times each call of a function; the tool is named like the function by default."""
        if function is None:
            return functools.partial(self._wrap, tool=tool, measure=measure, on_estimate=on_estimate, **about)
        return self._wrap(function)

    def _wrap(
        self,
        function: Any,
        *,
        tool: str | None = None,
        measure: Measure | None = None,
        on_estimate: Callable[[OngoingCall], None] | None = None,
        **about: Any,
    ) -> Any:
        if inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__} is async: decorate it by an AsyncAlmanac")

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            sized = {"complexity": measure(*args, **kwargs)} if measure is not None else {}
            with self.call(tool or function.__name__, **{**about, **sized}) as ongoing:
                if on_estimate is not None:
                    on_estimate(ongoing)
                return function(*args, **kwargs)

        return timed


class AsyncTimed:
    """The same with an event loop."""

    def __init__(self, timing: AsyncTiming) -> None:
        self._timing = timing

    def call(self, tool_name: str, **about: Any) -> AbstractAsyncContextManager[OngoingCall]:
        """A context around a call. About: mode_name, complexity, timeout_ms, session_id."""
        return _AsyncContext(self._timing, _ongoing(tool_name, **about))

    @overload
    def decorate(self, function: F, /) -> F: ...
    @overload
    def decorate(
        self,
        *,
        tool: str | None = None,
        measure: Measure | None = None,
        on_estimate: Callable[[OngoingCall], None] | None = None,
        **about: Any,
    ) -> Callable[[F], F]: ...
    def decorate(  # type: ignore[misc]  # `about` is not `function`
        self,
        function: Any = None,
        /,
        *,
        tool: str | None = None,
        measure: Measure | None = None,
        on_estimate: Callable[[OngoingCall], None] | None = None,
        **about: Any,
    ) -> Any:
        """Times each call of an async function; the tool is named like the function by default."""
        if function is None:
            return functools.partial(self._wrap, tool=tool, measure=measure, on_estimate=on_estimate, **about)
        return self._wrap(function)

    def _wrap(
        self,
        function: Any,
        *,
        tool: str | None = None,
        measure: Measure | None = None,
        on_estimate: Callable[[OngoingCall], None] | None = None,
        **about: Any,
    ) -> Any:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__} is not async: decorate it by an Almanac")

        @functools.wraps(function)
        async def timed(*args: Any, **kwargs: Any) -> Any:
            sized = {"complexity": measure(*args, **kwargs)} if measure is not None else {}
            async with self.call(tool or function.__name__, **{**about, **sized}) as ongoing:
                if on_estimate is not None:
                    on_estimate(ongoing)
                return await function(*args, **kwargs)

        return timed
