"""The client for everybody else. Made from `_aio.py` by `scripts/make_sync.py`; edits are lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from types import TracebackType
from typing import Any, TypeVar

import httpx

from . import _call
from ._address import address
from ._bookkeeping import Bookkeeper
from ._budget import Budget
from ._call import Call
from ._deadline import Deadline, checked
from ._http import Http
from ._retry import Retry
from ._timed import Timed
from .errors import AlmanacAnswerError
from .types import (
    CallMetadata,
    Complexity,
    Execution,
    Memory,
    MemoryKind,
    MemoryPage,
    MemoryPast,
    Miss,
    Outcome,
    PresetMatches,
    Qualification,
    Recorded,
    Session,
    SessionPage,
    SessionTurn,
    Thread,
    Timing,
    ToolPage,
    UsageEvent,
    UsageReport,
)

T = TypeVar("T")


class Connection:
    """Sends calls, again where nothing is done twice by that."""

    def __init__(self, http: Http, retry: Retry, timeout: float | None) -> None:
        """`timeout` is in seconds, for a call with its repetitions."""
        self._http = http
        self._retry = retry
        self._timeout = timeout

    def for_bookkeeping(self, timeout: float, *, is_repeated: bool) -> Connection:
        """The same, but nothing waits longer than this, nor for a daemon that does not listen."""
        own = timeout if self._timeout is None else min(timeout, self._timeout)
        attempts = self._retry.attempts if is_repeated else 1
        return Connection(self._http, replace(self._retry, attempts=attempts, connecting=0.0), own)

    def send(self, call: Call[T]) -> T:
        """The answer; raises `AlmanacRefusedError`, `AlmanacUnreachableError` or `AlmanacAnswerError`."""
        deadline = Deadline(self._timeout)
        # A daemon that does not listen is looked for, which is no attempt.
        attempts = {True: 0, False: 0}
        while True:
            outcome = self._outcome(call, deadline)
            was_refused = isinstance(outcome, httpx.ConnectError)
            pause = self._retry.next_pause(attempts[was_refused], deadline.elapsed(), call.is_safe, outcome)
            if pause is None or pause >= deadline.left():
                return call.result(outcome)
            time.sleep(pause)
            attempts[was_refused] += 1

    def _outcome(self, call: Call[Any], deadline: Deadline) -> httpx.Response | httpx.TransportError:
        http = self._http.client()
        try:
            with http.stream(**_call.request(call), timeout=deadline.limit(http.timeout)) as response:
                parts = []
                for part in response.iter_bytes():
                    parts.append(part)
                    deadline.check()
                return _call.whole(response, parts)
        except httpx.TransportError as error:
            return error
        except httpx.RequestError as error:
            raise AlmanacAnswerError(f"{call.method} {call.path}: {error!r}") from error


class ToolService:
    """What tools exist, and which go together."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(
        self, query: str | None = None, *, limit: int = 100, cursor: str | None = None, **facets: str | None
    ) -> ToolPage:
        """A page of tools, ranked by a query. Facets: category, capability, keyword, provider, env_var, error."""
        return self._connection.send(_call.tools(query, limit, cursor, facets))

    def get(self, name: str) -> dict[str, Any]:
        """A tool's document."""
        return self._connection.send(_call.tool(name))

    def relations(self, name: str) -> dict[str, Any]:
        """What goes with the tool, and what does not, by either side's document."""
        return self._connection.send(_call.tool_relations(name))

    def check(self, names: Sequence[str], *, env_vars: Iterable[str] = ()) -> dict[str, Any]:
        """Whether the tools go together; `env_vars` are the names of the variables that are there."""
        return self._connection.send(_call.check_tools(names, env_vars))

    def qualify(self, message: str, *, session_id: str | None = None, **more: Any) -> Qualification:
        """Which tools fit the message. More: networks, max_tools, min_confidence, scores, excluded_tools and so on."""
        return self._connection.send(_call.qualify(message, session_id, more))

    def report_miss(self, tool_name: str, *, session_id: str | None = None, message: str | None = None) -> Miss:
        """Tells that a tool was needed and not offered: its category is added to the session, and the choice is learnt.

        The message is the session's last one by default.
        """
        return self._connection.send(_call.report_miss(tool_name, session_id, message))


class TimingService:
    """How long calls take."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def estimate(
        self,
        tool_name: str,
        *,
        mode_name: str | None = None,
        complexity: Complexity | None = None,
        timeout_ms: int | None = None,
        elapsed_ms: int | None = None,
    ) -> Timing:
        """How long the call will take, and whether it will time out."""
        return self._connection.send(_call.estimate(tool_name, mode_name, complexity, timeout_ms, elapsed_ms))

    def estimate_plan(self, steps: Sequence[str | Mapping[str, Any]], *, timeout_ms: int | None = None) -> Timing:
        """How long the calls take one after the other. A step is a tool's name, or a mapping that says more."""
        return self._connection.send(_call.estimate_plan(steps, timeout_ms))

    def record(self, *executions: Execution) -> Recorded:
        """Records calls that ended, all or none; returns when they are durable."""
        return self._connection.send(_call.record(executions))

    def get(self, tool_name: str, *, mode: str | None = None) -> dict[str, Any]:
        """What was learnt of the tool, by mode."""
        return self._connection.send(_call.timing(tool_name, mode))


class MemoryService:
    """What was said, thought, read and planned. Kinds: messages, cognitive-processes, documents, tasks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(
        self, kind: MemoryKind, content: str, metadata: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> Memory:
        """Keeps a memory; returns when it is durable."""
        return self._connection.send(_call.add_memory(kind, content, metadata, idempotency_key))

    def get(self, memory_id: str, *, include_deleted: bool = False) -> Memory:
        """A memory."""
        return self._connection.send(_call.memory(memory_id, include_deleted))

    def update(
        self,
        memory_id: str,
        *,
        content: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        version: int | None = None,
    ) -> Memory:
        """Changes a memory by a merge patch: None removes a key. With a version, only if it is still the latest."""
        return self._connection.send(_call.update_memory(memory_id, content, metadata, version))

    def delete(self, memory_id: str, *, version: int | None = None) -> Memory:
        """Deletes softly. With a version, only if it is still the latest."""
        return self._connection.send(_call.delete_memory(memory_id, version))

    def restore(self, memory_id: str, *, version: int | None = None) -> Memory:
        """Takes a soft delete back. With a version, only if it is still the latest."""
        return self._connection.send(_call.restore_memory(memory_id, version))

    def search(
        self,
        kind: MemoryKind | None,
        query: str | None = None,
        *,
        criteria: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> MemoryPage:
        """Looks for memories by words, meaning and fields, of one kind or, with None, of all.

        More: limit, offset, cursor, sort_by, explain and so on.
        """
        return self._connection.send(
            _call.search_memories(kind, criteria if criteria is not None else {}, {"query": query, **more})
        )

    def each(
        self,
        kind: MemoryKind | None,
        query: str | None = None,
        *,
        criteria: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Iterator[Memory]:
        """All that `search` finds, a page at a time as they are taken. `limit` is that of a page, 100 by default."""
        more = {"limit": 100, **more}
        while True:
            page = self.search(kind, query, criteria=criteria, **more)
            yield from page["memories"]
            if page.get("nextCursor") is None:
                return
            more = {**more, "cursor": page["nextCursor"], "offset": None}

    def history(
        self, memory_id: str, *, limit: int = 100, cursor: str | None = None, include_deleted: bool = False
    ) -> MemoryPast:
        """Earlier versions, latest first."""
        return self._connection.send(_call.memory_history(memory_id, limit, cursor, include_deleted))

    def thread(
        self, thread_id: str, *, chat_id: str | None = None, limit: int = 100, cursor: str | None = None
    ) -> Thread:
        """A thread's messages in order."""
        return self._connection.send(_call.thread(thread_id, chat_id, limit, cursor))


class Almanac:
    """A daemon. The address is `ALMANAC_URL`, else http://127.0.0.1:7311; the token is `ALMANAC_TOKEN`."""

    def __init__(
        self,
        url: str | None = None,
        *,
        socket: str | PathLike[str] | None = None,
        token: str | None = None,
        timeout: float | None = None,
        retry: Retry | None = None,
        budget: Budget | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        """`timeout` is in seconds, for a call with its repetitions; 30 by default. `budget` is for `timed` and `call`.

        `socket` is the path of a unix socket of the daemon, instead of `url`. A client of httpx that is given is
        used as it is, with its own timeouts unless one is given, and is left open. Raises a TypeError for a URL and a
        socket, a ValueError for a token that cannot be sent, and an AlmanacArgumentError, which is one too, for a
        timeout that is not more than 0.
        """
        own_timeout = checked(timeout, "timeout") if timeout is not None else _call.DEFAULT_TIMEOUT
        self._http = Http(http if http is not None else address(url, socket, token), own_timeout)
        whole = timeout if http is not None else own_timeout
        self._connection = Connection(self._http, retry if retry is not None else Retry(), whole)
        self.tools = ToolService(self._connection)
        self.timing = TimingService(self._connection)
        self.memory = MemoryService(self._connection)
        budget = budget if budget is not None else Budget()
        self._bookkeeper = Bookkeeper(
            TimingService(self._connection.for_bookkeeping(budget.estimate, is_repeated=False)),
            TimingService(self._connection.for_bookkeeping(budget.record, is_repeated=True)),
        )
        timed = Timed(self._bookkeeper)
        #: Decorates a function that is a tool: each call of it is recorded.
        self.timed = timed.decorate
        #: A context around a call: asks before, records after.
        self.call = timed.call

    def metadata(self, tool_name: str, *, session_id: str | None = None, **more: Any) -> CallMetadata:
        """Timing, suggestions and context of a call. More: mode_name, complexity, result_context, goal and so on."""
        return self._connection.send(_call.metadata(tool_name, session_id, more))

    def enrich(
        self, tool_name: str, response: Mapping[str, Any], *, session_id: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """A tool's response, which is a mapping, with `metadata` added. More is that of `metadata`."""
        return self._connection.send(_call.enrich(tool_name, response, session_id, more))

    def check_plan(self, steps: Sequence[str | Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """Whether the calls are a good plan, and what would be better. More: goal, session_id, timeout_ms."""
        return self._connection.send(_call.check_plan(steps, more))

    def match_presets(
        self, *, tool_history: Sequence[str] | None = None, goal: str | None = None, session_id: str | None = None
    ) -> PresetMatches:
        """Workflows that were begun, or that a goal calls for. The session's calls stand in for `tool_history`."""
        return self._connection.send(_call.match_presets(tool_history, goal, session_id))

    def usage(self) -> UsageReport:
        """What turns used and cost, by day and by session."""
        return self._connection.send(_call.usage())

    def report_usage(self, *, session_id: str | None = None, **more: Any) -> UsageEvent:
        """Tells what a turn used; not sent again if it may be counted. More: tokensIn, tokensOut, costUsd and so on."""
        return self._connection.send(_call.report_usage(session_id, more))

    def sessions(self, *, limit: int = 100, cursor: str | None = None) -> SessionPage:
        """A page of the sessions of late."""
        return self._connection.send(_call.sessions(limit, cursor))

    def session(self, session_id: str) -> Session:
        """What a session did."""
        return self._connection.send(_call.session(session_id))

    def session_turns(self, session_id: str) -> list[SessionTurn]:
        """What the session's last turns were about, the latest first: suggestions made and taken."""
        return self._connection.send(_call.session_turns(session_id))

    def record(self, tool_name: str, duration_ms: float, *, outcome: Outcome = "success", **more: Any) -> Recorded:
        """Records one call that ended. More: mode_name, complexity, session_id, timestamp, idempotency_key."""
        return self.timing.record(_call.execution(tool_name, duration_ms, outcome, more))

    def close(self) -> None:
        """Closes the connections, after what is still being recorded."""
        self._bookkeeper.close()
        self._http.close()

    def __enter__(self) -> Almanac:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
