"""What is decorated: how it is called, and what it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def is_async(function: Any) -> bool:
    """Is it called with an event loop?"""
    return _is(inspect.iscoroutinefunction, function) or is_async_generator(function)


def is_generator(function: Any) -> bool:
    """Does a call of it end when it was iterated?"""
    return _is(inspect.isgeneratorfunction, function)


def is_async_generator(function: Any) -> bool:
    """The same with an event loop."""
    return _is(inspect.isasyncgenfunction, function)


def name_of(function: Any) -> str:
    """What the tool is called if nothing else is said. Raises a TypeError if it has no name."""
    for name in (getattr(function, "__name__", None), getattr(function, "name", None)):
        if isinstance(name, str) and name:
            return name
    if isinstance(function, functools.partial):
        return name_of(function.func)
    raise TypeError(f"a {type(function).__name__} has no name: say tool= to the decorator")


def is_tool_of_langchain(function: Any) -> bool:
    """Is it what LangChain's `@tool` makes, which is a model that has functions?"""
    return all(hasattr(function, name) for name in ("name", "func", "coroutine", "model_copy"))


def with_function(tool: Any, part: str, wrap: Callable[[Any], Any]) -> Any:
    """LangChain's tool with its `func` or its `coroutine` wrapped. Raises a TypeError if it has none."""
    function = getattr(tool, part)
    if function is None:
        raise TypeError(
            f"{tool.name} has no {part}: decorate it by an {'AsyncAlmanac' if part == 'func' else 'Almanac'}"
        )
    return tool.model_copy(update={part: wrap(function)})


def check_callable(function: Any) -> None:
    """Raises a TypeError for what is no function, such as the tool that another decorator made."""
    # A static method can be called, but what is made of it is none, and would be called with the instance.
    if not callable(function) or isinstance(function, staticmethod):
        kind = type(function).__name__
        raise TypeError(f"a {kind} is no function: decorate the function first, and make it a {kind} then")


def _is(kind: Callable[[Any], bool], function: Any) -> bool:
    return kind(function) or kind(_body(function))


def _body(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__
