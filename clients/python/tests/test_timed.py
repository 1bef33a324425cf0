"""What can be timed, and until when."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import AsyncIterator, Callable, Generator
from typing import Any

import httpx
import pytest

from almanac_client import Almanac, AsyncAlmanac


class Records:
    """A daemon that keeps what it is told, and the clients of it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        transport = httpx.MockTransport(self._answer)
        self.almanac = Almanac(http=httpx.Client(transport=transport, base_url="http://x"))
        self.later = AsyncAlmanac(http=httpx.AsyncClient(transport=transport, base_url="http://x"))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/executions":
            self.told += [(one["tool_name"], one["outcome"]) for one in json.loads(request.content)]
        return httpx.Response(200, json={"timing": {}, "recorded": 1})


@pytest.fixture
def records() -> Records:
    """What is recorded."""
    return Records()


def counting(last: Any) -> Generator[int, Any, Any]:
    """Counts what it is sent, until it has to end as this says."""
    got = 0
    for _ in range(2):
        sent = yield got
        got += 1 if sent is None else sent
    if isinstance(last, Exception):
        raise last
    return last


async def counting_later(last: Any) -> AsyncIterator[int]:
    """The same with an event loop."""
    got = 0
    for _ in range(2):
        sent = yield got
        got += 1 if sent is None else sent
    if isinstance(last, Exception):
        raise last


def test_a_generator_is_timed_until_it_is_exhausted(records: Records) -> None:
    timed = records.almanac.timed(counting)
    assert inspect.isgeneratorfunction(timed)
    items = timed("result")
    assert records.told == []
    assert [next(items), next(items)] == [0, 1]
    assert records.told == []
    with pytest.raises(StopIteration, match="result"):
        next(items)
    assert records.told == [("counting", "success")]


def test_a_generator_is_sent_to_fails_and_is_closed(records: Records) -> None:
    timed: Callable[..., Any] = records.almanac.timed(counting)
    items = timed(None)
    assert [next(items), items.send(5)] == [0, 5]
    items.close()
    with pytest.raises(KeyError):
        list(timed(KeyError("no")))
    items = timed(None)
    next(items)
    with pytest.raises(TimeoutError):
        items.throw(TimeoutError())
    assert [outcome for _, outcome in records.told] == ["cancelled", "error", "timeout"]


def test_a_generator_with_a_loop_is_timed_until_its_end(records: Records) -> None:
    timed: Callable[..., Any] = records.later.timed(counting_later)
    assert inspect.isasyncgenfunction(timed)

    async def run() -> None:
        assert [item async for item in timed(None)] == [0, 1]
        items = timed(None)
        assert [await items.asend(None), await items.asend(5)] == [0, 5]
        await items.aclose()
        with pytest.raises(KeyError):
            [item async for item in timed(KeyError("no"))]
        items = timed(None)
        await items.asend(None)
        with pytest.raises(TimeoutError):
            await items.athrow(TimeoutError())
        await records.later.aclose()

    asyncio.run(run())
    assert sorted(outcome for _, outcome in records.told) == ["cancelled", "error", "success", "timeout"]


def test_a_generator_that_catches_what_is_thrown_goes_on(records: Records) -> None:
    @records.later.timed
    async def stubborn() -> AsyncIterator[str]:
        try:
            yield "first"
        except KeyError:
            yield "second"

    async def run() -> None:
        items: Any = stubborn()
        assert await items.asend(None) == "first"
        assert await items.athrow(KeyError()) == "second"
        assert [item async for item in items] == []

    asyncio.run(run())
    assert records.told == [("stubborn", "success")]


class Greeter:
    """Something that is called without being a function."""

    def __call__(self, name: str) -> str:
        return f"hello {name}"


class Named(Greeter):
    """The same with a name."""

    name = "greeter"


class Later:
    """The same with an event loop."""

    name = "later"

    async def __call__(self, name: str) -> str:
        return f"hello {name}"


def greet(greeting: str, name: str) -> str:
    """A function."""
    return f"{greeting} {name}"


async def greet_later(greeting: str, name: str) -> str:
    """A function for an event loop."""
    return f"{greeting} {name}"


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (functools.partial(greet, "hello"), "greet"),
        (functools.partial(functools.partial(greet), "hello"), "greet"),
        (Named(), "greeter"),
        (functools.partial(Named()), "greeter"),
        (Named().__call__, "__call__"),
    ],
)
def test_what_is_called_has_a_name(function: Callable[[str], str], name: str, records: Records) -> None:
    assert records.almanac.timed(function)("Ada") == "hello Ada"
    assert records.told == [(name, "success")]


@pytest.mark.parametrize(
    ("function", "name"), [(functools.partial(greet_later, "hello"), "greet_later"), (Later(), "later")]
)
def test_what_is_called_with_a_loop_has_a_name(function: Any, name: str, records: Records) -> None:
    assert asyncio.run(records.later.timed(function)("Ada")) == "hello Ada"
    assert records.told == [(name, "success")]


def test_what_has_no_name_is_given_one(records: Records) -> None:
    with pytest.raises(TypeError, match="a Greeter has no name: say tool="):
        records.almanac.timed(Greeter())
    assert records.almanac.timed(tool="greeter")(Greeter())("Ada") == "hello Ada"
    assert records.told == [("greeter", "success")]


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (Later(), "AsyncAlmanac"),
        (functools.partial(Later(), "x"), "AsyncAlmanac"),
        (counting_later, "AsyncAlmanac"),
        (functools.partial(greet_later, "x"), "AsyncAlmanac"),
    ],
)
def test_what_needs_a_loop_is_told_where_to_go(function: Any, match: str, records: Records) -> None:
    with pytest.raises(TypeError, match=match):
        records.almanac.timed(function)


@pytest.mark.parametrize("function", [counting, functools.partial(greet, "x"), Named()])
def test_what_needs_no_loop_is_told_where_to_go(function: Any, records: Records) -> None:
    with pytest.raises(TypeError, match="decorate it by an Almanac"):
        records.later.timed(function)


@pytest.mark.parametrize("tool", [None, "x"])
def test_what_is_no_function_is_refused(tool: str | None, records: Records) -> None:
    for almanac in (records.almanac, records.later):
        with pytest.raises(TypeError, match="a dict is no function"):
            almanac.timed(tool=tool)({})  # type: ignore[type-var]


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
@pytest.mark.parametrize("tool", [None, "x"])
def test_a_method_is_decorated_below_what_makes_it_one(tool: str | None, kind: Any, records: Records) -> None:
    for almanac, function in ((records.almanac, greet), (records.later, greet_later)):
        said = f"a {kind.__name__} is no function: decorate the function first, and make it a {kind.__name__} then"
        with pytest.raises(TypeError, match=said):
            almanac.timed(tool=tool)(kind(function))

    def method(*arguments: Any) -> int:
        return len(arguments)

    here: Any = type("Here", (), {"method": kind(records.almanac.timed(method))})
    expected = 1 if kind is staticmethod else 2
    assert (here.method("x"), here().method("x")) == (expected, expected)
    assert records.told == [("method", "success")] * 2


def test_a_wrong_argument_is_told_when_it_is_given(records: Records) -> None:
    for almanac, function in ((records.almanac, greet), (records.later, greet_later)):
        with pytest.raises(TypeError, match="sessionid"):
            almanac.timed(sessionid="s1")(function)


def test_a_tool_of_langchain_stays_one(records: Records) -> None:
    tools = pytest.importorskip("langchain_core.tools")

    @records.almanac.timed
    @tools.tool  # type: ignore[untyped-decorator,unused-ignore]
    def lc_tool(number: int) -> int:
        """A tool."""
        return number + 1

    @records.later.timed(tool="renamed")
    @tools.tool  # type: ignore[untyped-decorator,unused-ignore]
    async def lc_later(number: int) -> int:
        """A tool with an event loop."""
        return number + 1

    assert isinstance(lc_tool, tools.BaseTool)
    assert lc_tool.args == {"number": {"title": "Number", "type": "integer"}}
    assert (lc_tool.invoke({"number": 1}), asyncio.run(lc_later.ainvoke({"number": 1}))) == (2, 2)
    assert records.told == [("lc_tool", "success"), ("renamed", "success")]
    with pytest.raises(TypeError, match="lc_later has no func: decorate it by an AsyncAlmanac"):
        records.almanac.timed(lc_later)
    with pytest.raises(TypeError, match="lc_tool has no coroutine: decorate it by an Almanac"):
        records.later.timed(lc_tool)
