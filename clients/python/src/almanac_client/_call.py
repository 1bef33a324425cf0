"""What is sent, and how an answer is read: the same for the two clients."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import httpx

from . import _text
from .errors import (
    AlmanacAnswerError,
    AlmanacArgumentError,
    AlmanacRefusedError,
    AlmanacTimeoutError,
    AlmanacUnreachableError,
)
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

#: Headers that are none of the body any more when it was unpacked.
_OF_PACKED_BODIES = ("content-encoding", "content-length", "transfer-encoding")

#: How long a call may take, in seconds.
DEFAULT_TIMEOUT = 30.0


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request, and the part of its answer that is wanted."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: May it be sent twice and be done once?
    is_safe: bool = True
    #: The key of the answer that is wanted; all of it by default.
    part: str | None = None
    #: The key of a page under which its list is.
    page_of: str | None = None

    def result(self, outcome: httpx.Response | httpx.TransportError) -> T:
        """What came of it in the end; raises an `AlmanacError`."""
        if isinstance(outcome, httpx.TimeoutException):
            raise AlmanacTimeoutError(f"{self.method} {self.path}: {outcome!r}") from outcome
        if isinstance(outcome, httpx.LocalProtocolError):
            # What it says, and so what it stems from, may show a token.
            raise AlmanacArgumentError(f"{self.method} {self.path}: a header field has what none can have") from None
        if isinstance(outcome, httpx.TransportError):
            raise AlmanacUnreachableError(f"{self.method} {self.path}: {outcome!r}") from outcome
        return self.read(outcome)

    def read(self, response: httpx.Response) -> T:
        """The answer, or the problem that it tells."""
        document = json_object(response)
        if not response.is_success:
            told = {"title": response.reason_phrase, "detail": response.text[:200]}
            raise AlmanacRefusedError(response.status_code, told if document is None else document)
        if document is None:
            raise AlmanacAnswerError("the answer is no JSON object", response.status_code)
        if self.page_of is not None and not isinstance(document.get(self.page_of), list):
            raise AlmanacAnswerError(f"the answer has no `{self.page_of}`", response.status_code)
        if self.part is None:
            return cast(T, document)
        part = document.get(self.part)
        if not isinstance(part, (dict, list)):
            raise AlmanacAnswerError(f"the answer has no `{self.part}`", response.status_code)
        return cast(T, part)


def json_object(response: httpx.Response) -> dict[str, Any] | None:
    """What an answer says, if that is an object of JSON."""
    try:
        found = response.json()
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def request(call: Call[Any]) -> dict[str, Any]:
    """The call as httpx sends it; raises an `AlmanacArgumentError` if it cannot be."""
    query = {name: _parameter(name, value) for name, value in call.query.items() if value is not None}
    headers = {name: _text.header(value, name) for name, value in call.headers.items()}
    sent = {"method": call.method, "url": call.path, "headers": headers, "params": query}
    if call.body is None:
        return sent
    return {**sent, "headers": {**headers, "content-type": "application/json"}, "content": _text.encoded(call.body)}


def whole(response: httpx.Response, parts: Iterable[bytes]) -> httpx.Response:
    """A response with its body, which is unpacked."""
    headers = {name: value for name, value in response.headers.items() if name not in _OF_PACKED_BODIES}
    return httpx.Response(
        response.status_code, headers=headers, content=b"".join(parts), extensions=response.extensions
    )


def _parameter(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return _text.checked(value, name) if isinstance(value, str) else value


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def tools(query: str | None, limit: int, cursor: str | None, facets: Mapping[str, str | None]) -> Call[ToolPage]:
    """A page of tools."""
    return Call("GET", "/v1/tools", {"q": query, "limit": limit, "cursor": cursor, **facets}, page_of="items")


def tool(name: str) -> Call[dict[str, Any]]:
    """A tool's document."""
    return Call("GET", f"/v1/tools/{_text.segment(name)}")


def tool_relations(name: str) -> Call[dict[str, Any]]:
    """What goes with a tool."""
    return Call("GET", f"/v1/tools/{_text.segment(name)}/relations")


def check_tools(names: Sequence[str], env_vars: Iterable[str]) -> Call[dict[str, Any]]:
    """Whether a set of tools is a good one."""
    return Call("POST", "/v1/tools/check", body={"tools": list(names), "env_vars": list(env_vars)})


def qualify(message: str, session_id: str | None, more: Mapping[str, Any]) -> Call[Qualification]:
    """Which tools fit a message."""
    return Call("POST", "/v1/qualify", body=_given(message=message, session_id=session_id, **more))


def report_miss(tool_name: str, session_id: str | None, message: str | None) -> Call[Miss]:
    """A tool that was needed and not offered."""
    body = _given(toolName=tool_name, sessionId=session_id, message=message)
    return Call("POST", "/v1/qualify/miss", body=body, is_safe=False)


def report_usage(session_id: str | None, more: Mapping[str, Any]) -> Call[UsageEvent]:
    """What a turn used."""
    return Call("POST", "/v1/usage", body=_given(sessionId=session_id, **more), is_safe=False)


def usage() -> Call[UsageReport]:
    """What was used."""
    return Call("GET", "/v1/usage")


def match_presets(tool_history: Sequence[str] | None, goal: str | None, session_id: str | None) -> Call[PresetMatches]:
    """Workflows that were begun, or that a goal calls for."""
    history = None if tool_history is None else list(tool_history)
    return Call("POST", "/v1/presets/match", body=_given(tool_history=history, goal=goal, session_id=session_id))


def estimate(
    tool_name: str,
    mode_name: str | None,
    complexity: Complexity | None,
    timeout_ms: int | None,
    elapsed_ms: int | None,
) -> Call[Timing]:
    """How long a call will take."""
    body = _given(
        tool_name=tool_name, mode_name=mode_name, complexity=complexity, timeout_ms=timeout_ms, elapsed_ms=elapsed_ms
    )
    return Call("POST", "/v1/estimate", body=body, part="timing")


def estimate_plan(steps: Sequence[str | Mapping[str, Any]], timeout_ms: int | None) -> Call[Timing]:
    """How long calls one after the other will take."""
    return Call("POST", "/v1/estimate", body=_given(steps=list(steps), timeout_ms=timeout_ms), part="timing")


def execution(
    tool_name: str, duration_ms: float, outcome: Outcome | None = None, more: Mapping[str, Any] | None = None
) -> Execution:
    """A call that ended, as it is recorded. Raises an `AlmanacArgumentError` for a duration that is no number."""
    if not math.isfinite(duration_ms):
        raise AlmanacArgumentError(f"duration_ms cannot be {duration_ms}: it is a number of ms")
    told: Any = _given(tool_name=tool_name, duration_ms=round(duration_ms), outcome=outcome, **(more or {}))
    return cast(Execution, told)


def record(executions: Sequence[Execution]) -> Call[Recorded]:
    """Calls that ended; each gets an idempotency key, so that sending it again counts it once."""
    keyed = [{"idempotency_key": str(uuid.uuid4()), **execution} for execution in executions]
    return Call("POST", "/v1/executions", body=keyed)


def timing(tool_name: str, mode: str | None) -> Call[dict[str, Any]]:
    """What was learnt of a tool."""
    return Call("GET", f"/v1/timing/{_text.segment(tool_name)}", {"mode": mode})


def metadata(tool_name: str, session_id: str | None, more: Mapping[str, Any]) -> Call[CallMetadata]:
    """Timing, suggestions and context of a call."""
    return Call("POST", "/v1/metadata", body=_about(tool_name, session_id, more))


def enrich(
    tool_name: str, response: Mapping[str, Any], session_id: str | None, more: Mapping[str, Any]
) -> Call[dict[str, Any]]:
    """A tool's response with the metadata added."""
    body = {"request": _about(tool_name, session_id, more), "response": _text.mapping(response, "the response")}
    return Call("POST", "/v1/enrich", body=body)


def _about(tool_name: str, session_id: str | None, more: Mapping[str, Any]) -> dict[str, Any]:
    asked = _given(tool_name=tool_name, **more)
    if session_id is not None:
        asked["result_context"] = {**asked.get("result_context", {}), "session_id": session_id}
    return asked


def check_plan(steps: Sequence[str | Mapping[str, Any]], more: Mapping[str, Any]) -> Call[dict[str, Any]]:
    """Whether calls one after the other are a good plan."""
    return Call("POST", "/v1/plans/check", body=_given(steps=list(steps), **more))


def sessions(limit: int, cursor: str | None) -> Call[SessionPage]:
    """A page of sessions."""
    return Call("GET", "/v1/sessions", {"limit": limit, "cursor": cursor}, page_of="items")


def session(session_id: str) -> Call[Session]:
    """What a session did."""
    return Call("GET", f"/v1/sessions/{_text.segment(session_id)}")


def session_turns(session_id: str) -> Call[list[SessionTurn]]:
    """What a session's last turns were about."""
    return Call("GET", f"/v1/sessions/{_text.segment(session_id)}/turns", part="items")


def add_memory(
    kind: MemoryKind, content: str, metadata: Mapping[str, Any], idempotency_key: str | None
) -> Call[Memory]:
    """A new memory; sent again, it is kept once."""
    # An empty one is refused by the daemon: whoever gave it meant one of its own.
    headers = {"idempotency-key": str(uuid.uuid4()) if idempotency_key is None else idempotency_key}
    return Call(
        "POST",
        f"/v1/memories/{_text.segment(kind)}",
        body={"content": content, "metadata": _text.mapping(metadata, "the metadata")},
        headers=headers,
    )


def memory(memory_id: str, include_deleted: bool) -> Call[Memory]:
    """A memory."""
    return Call("GET", f"/v1/memories/{_text.segment(memory_id)}", {"includeDeleted": include_deleted})


def update_memory(
    memory_id: str, content: str | None, metadata: Mapping[str, Any] | None, version: int | None
) -> Call[Memory]:
    """A merge patch; with a version, only of that one."""
    changes = None if metadata is None else _text.mapping(metadata, "the metadata")
    body = _given(content=content, metadata=changes)
    return Call("PATCH", f"/v1/memories/{_text.segment(memory_id)}", body=body, headers=_of(version), is_safe=False)


def delete_memory(memory_id: str, version: int | None) -> Call[Memory]:
    """A soft delete; with a version, only of that one."""
    return Call("DELETE", f"/v1/memories/{_text.segment(memory_id)}", headers=_of(version), is_safe=False)


def restore_memory(memory_id: str, version: int | None) -> Call[Memory]:
    """The reverse of a soft delete; with a version, only of that one, which it is no more afterwards."""
    path = f"/v1/memories/{_text.segment(memory_id)}/restore"
    return Call("POST", path, headers=_of(version), is_safe=version is None)


def _of(version: int | None) -> dict[str, str]:
    return {} if version is None else {"if-match": f'"{version}"'}


def search_memories(kind: MemoryKind | None, criteria: Mapping[str, Any], more: Mapping[str, Any]) -> Call[MemoryPage]:
    """Memories of a kind, or of all, that are looked for."""
    path = "/v1/memories/search" if kind is None else f"/v1/memories/{_text.segment(kind)}/search"
    body = {"criteria": _text.mapping(criteria, "the criteria"), "options": _given(**more)}
    return Call("POST", path, body=body, page_of="memories")


def memory_history(memory_id: str, limit: int, cursor: str | None, include_deleted: bool) -> Call[MemoryPast]:
    """A memory's earlier versions."""
    query = {"limit": limit, "cursor": cursor, "includeDeleted": include_deleted}
    return Call("GET", f"/v1/memories/{_text.segment(memory_id)}/history", query, page_of="items")


def thread(thread_id: str, chat_id: str | None, limit: int, cursor: str | None) -> Call[Thread]:
    """A thread's messages."""
    query = {"chatId": chat_id, "limit": limit, "cursor": cursor}
    return Call("GET", f"/v1/threads/{_text.segment(thread_id)}", query, page_of="items")
