"""Around a call of a tool: what it will take is asked before, what it took is recorded after.

A daemon that does not answer keeps no tool from running, nor does anything else that goes wrong with that: it is
logged, and the estimate is None.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing
from types import TracebackType
from typing import Any, TypeVar, overload

from . import _call, _callee
from ._bookkeeping import AsyncBookkeeper, Bookkeeper, logger
from .types import Complexity, Execution, Outcome, Timing

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


def is_cancellation(error: BaseException | None) -> bool:
    """Has what is ended by this to end at once?"""
    return error is not None and not isinstance(error, Exception)


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

    def _begin(self) -> None:
        self._started = time.perf_counter()

    def _end(self, error: BaseException | None) -> Execution:
        self.duration_ms = (time.perf_counter() - self._started) * 1000
        about = {name: self._asked.get(name) for name in ("mode_name", "complexity")}
        outcome = self.outcome or outcome_of(error)
        return _call.execution(self.tool_name, self.duration_ms, outcome, {**about, "session_id": self._session_id})


class _Context(AbstractContextManager[OngoingCall]):
    def __init__(self, bookkeeper: Bookkeeper, call: OngoingCall) -> None:
        self._bookkeeper = bookkeeper
        self._call = call

    def __enter__(self) -> OngoingCall:
        self._call.timing = self._bookkeeper.estimate(self._call.tool_name, **self._call._asked)
        self._call._begin()
        return self._call

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bookkeeper.record(self._call._end(error))


class _AsyncContext(AbstractAsyncContextManager[OngoingCall]):
    def __init__(self, bookkeeper: AsyncBookkeeper, call: OngoingCall) -> None:
        self._bookkeeper = bookkeeper
        self._call = call

    async def __aenter__(self) -> OngoingCall:
        self._call.timing = await self._bookkeeper.estimate(self._call.tool_name, **self._call._asked)
        self._call._begin()
        return self._call

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._bookkeeper.record(self._call._end(error), is_awaited=not is_cancellation(error))


def _sized(tool_name: str, measure: Measure | None, args: Any, kwargs: Any) -> dict[str, Complexity]:
    if measure is None:
        return {}
    try:
        return {"complexity": measure(*args, **kwargs)}
    except Exception as error:
        logger.warning("a call of %s is not measured: %r", tool_name, error)
        return {}


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

    def __init__(self, bookkeeper: Bookkeeper) -> None:
        self._bookkeeper = bookkeeper

    def call(self, tool_name: str, **about: Any) -> AbstractContextManager[OngoingCall]:
        """A context around a call. About: mode_name, complexity, timeout_ms, session_id."""
        return _Context(self._bookkeeper, _ongoing(tool_name, **about))

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
        """Times each call of a function, of a generator until its end; the tool is named like it by default."""
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
        if _callee.is_tool_of_langchain(function):
            name = tool or function.name
            wrap = functools.partial(self._wrap, tool=name, measure=measure, on_estimate=on_estimate, **about)
            return _callee.with_function(function, "func", wrap)
        _callee.check_callable(function)
        name = tool or _callee.name_of(function)
        if _callee.is_async(function):
            raise TypeError(f"{name} is async: decorate it by an AsyncAlmanac")
        # What is wrong with it is said here, not by each call.
        _ongoing(name, **about)

        def begin(args: Any, kwargs: Any) -> AbstractContextManager[OngoingCall]:
            return self.call(name, **{**about, **_sized(name, measure, args, kwargs)})

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs) as ongoing:
                if on_estimate is not None:
                    on_estimate(ongoing)
                return function(*args, **kwargs)

        @functools.wraps(function)
        def timed_generator(*args: Any, **kwargs: Any) -> Any:
            with begin(args, kwargs) as ongoing:
                if on_estimate is not None:
                    on_estimate(ongoing)
                return (yield from function(*args, **kwargs))

        return timed_generator if _callee.is_generator(function) else timed


class AsyncTimed:
    """The same with an event loop."""

    def __init__(self, bookkeeper: AsyncBookkeeper) -> None:
        self._bookkeeper = bookkeeper

    def call(self, tool_name: str, **about: Any) -> AbstractAsyncContextManager[OngoingCall]:
        """A context around a call. About: mode_name, complexity, timeout_ms, session_id."""
        return _AsyncContext(self._bookkeeper, _ongoing(tool_name, **about))

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
        """Times each call of an async function, of a generator until its end; the tool is named like it by default."""
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
        if _callee.is_tool_of_langchain(function):
            name = tool or function.name
            wrap = functools.partial(self._wrap, tool=name, measure=measure, on_estimate=on_estimate, **about)
            return _callee.with_function(function, "coroutine", wrap)
        _callee.check_callable(function)
        name = tool or _callee.name_of(function)
        if not _callee.is_async(function):
            raise TypeError(f"{name} is not async: decorate it by an Almanac")
        # What is wrong with it is said here, not by each call.
        _ongoing(name, **about)

        def begin(args: Any, kwargs: Any) -> AbstractAsyncContextManager[OngoingCall]:
            return self.call(name, **{**about, **_sized(name, measure, args, kwargs)})

        @functools.wraps(function)
        async def timed(*args: Any, **kwargs: Any) -> Any:
            async with begin(args, kwargs) as ongoing:
                if on_estimate is not None:
                    on_estimate(ongoing)
                return await function(*args, **kwargs)

        @functools.wraps(function)
        async def timed_generator(*args: Any, **kwargs: Any) -> Any:
            async with begin(args, kwargs) as ongoing:
                if on_estimate is not None:
                    on_estimate(ongoing)
                async with aclosing(function(*args, **kwargs)) as items:
                    # As `yield from`, which async generators do not have.
                    step = items.asend(None)
                    while True:
                        try:
                            item = await step
                        except StopAsyncIteration:
                            return
                        try:
                            step = items.asend((yield item))
                        except GeneratorExit:
                            raise
                        except BaseException as error:
                            step = items.athrow(error)

        return timed_generator if _callee.is_async_generator(function) else timed
