"""The clients against a daemon."""

from __future__ import annotations

import asyncio
import re
import runpy
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from almanac_client import Almanac, AlmanacRefusedError, AlmanacUnreachableError, AsyncAlmanac, Retry

PACKAGE = Path(__file__).resolve().parents[1]


# Of the category `required`: they are there whatever is asked, at any maxTools.
ALWAYS = {
    "calculateAdjustedPrice",
    "createMemory",
    "currentUnixTimestamp",
    "deleteMemory",
    "getLeaderboard",
    "getUserMemoriesByCategory",
    "getUserMemoryCategories",
    "multiTokenMetadataInfo",
    "updateMemory",
    "wallet",
    "websearch",
}


def about(thread: str, position: int) -> dict[str, Any]:
    """Metadata of a message."""
    ids = {"userId": "user:user:u", "agentId": "agent:agent:a", "chatId": "chat:chat:c"}
    return {"role": "user", **ids, "thread": {"id": thread, "position": position}}


def test_tools_are_listed_chosen_and_checked(almanac: Almanac) -> None:
    page = almanac.tools.list("search the web", limit=3)
    assert "web_search" in [tool["name"] for tool in page["items"]]
    assert len(almanac.tools.list(category=page["items"][0]["category"])["items"]) > 0
    assert almanac.tools.get("web_search")["name"] == "web_search"
    assert almanac.tools.check(["web_search", "http_request"])["conflicts"]
    assert almanac.tools.relations("web_search")["conflicts"]
    fit = almanac.tools.qualify("search the web for news", max_tools=3)
    assert 0 < len([tool for tool in fit["availableTools"] if tool not in ALWAYS]) <= 3


def test_a_refusal_says_what_is_wrong(almanac: Almanac) -> None:
    with pytest.raises(AlmanacRefusedError, match="did you mean web_search") as refused:
        almanac.tools.get("web_serch")
    assert refused.value.status == 404
    assert refused.value.code == "unknown-tool"
    with pytest.raises(AlmanacRefusedError) as refused:
        almanac.metadata("web_search", no_such_key=1)
    assert refused.value.errors[0]["pointer"] == "/no_such_key"


def test_what_is_timed_is_learnt(almanac: Almanac) -> None:
    estimates: list[Any] = []

    @almanac.timed(session_id="py", on_estimate=lambda call: estimates.append(call.timing))
    def py_tool(fails: type[Exception] | None = None) -> int:
        if fails is not None:
            raise fails("no")
        return 7

    assert py_tool() == 7
    for error in (TimeoutError, ValueError):
        with pytest.raises(error):
            py_tool(error)
    learnt = almanac.timing.get("py_tool")
    assert sum(key["samples"] for key in learnt["items"]) >= 2
    assert almanac.session("py")["toolHistory"] == ["py_tool"] * 3
    assert almanac.session_turns("none") == []
    assert estimates[0]["samples"] == 0
    assert almanac.timing.estimate_plan(["py_tool", {"tool_name": "py_tool"}])["estimated_duration_ms"] >= 0


def test_a_context_asks_before_and_records_after(almanac: Almanac) -> None:
    with almanac.call("py_context", complexity={"content_length": 9}) as call:
        assert call.timing is not None
        call.outcome = "cancelled"
    assert call.duration_ms is not None
    assert almanac.record("py_context", 12.4)["recorded"] == 1
    assert almanac.timing.get("py_context")["total"] >= 1
    assert almanac.enrich("py_context", {"a": 1})["a"] == 1
    assert almanac.check_plan(["web_search"])["ok"] is True


def test_memories_are_kept_found_and_changed(almanac: Almanac) -> None:
    thread = str(uuid.uuid4())
    kept = almanac.memory.add("messages", "whales sing at night", about(thread, 0), idempotency_key=thread)
    again = almanac.memory.add("messages", "whales sing at night", about(thread, 0), idempotency_key=thread)
    assert kept["id"] == again["id"]
    found = almanac.memory.search("messages", "do whales sing?", criteria={"threadId": thread}, limit=5)
    assert [memory["id"] for memory in found["memories"]] == [kept["id"]]
    found = almanac.memory.search(None, "do whales sing?", criteria={"userId": about(thread, 0)["userId"]})
    assert kept["id"] in [memory["id"] for memory in found["memories"]]
    changed = almanac.memory.update(kept["id"], metadata={"importance": "high"}, version=1)
    assert changed["version"] == 2
    assert changed["metadata"]["importance"] == "high"
    with pytest.raises(AlmanacRefusedError) as refused:
        almanac.memory.update(kept["id"], content="x", version=1)
    assert refused.value.code == "version-changed"
    assert almanac.memory.history(kept["id"])["total"] == 1
    almanac.memory.delete(kept["id"])
    assert almanac.memory.get(kept["id"], include_deleted=True)["metadata"]["is_deleted"] is True
    almanac.memory.restore(kept["id"])
    assert almanac.memory.thread(thread)["items"][0]["id"] == kept["id"]


def test_each_memory_comes_once_from_all_pages(almanac: Almanac, url: str) -> None:
    thread = str(uuid.uuid4())
    for position in range(5):
        almanac.memory.add("messages", f"whale {position}", about(thread, position))
    found: dict[str, Any] = {"criteria": {"threadId": thread}, "sortBy": "thread.position", "limit": 2, "offset": 1}
    contents = [memory["content"] for memory in almanac.memory.each("messages", **found)]
    assert contents == [f"whale {position}" for position in range(1, 5)]

    async def later() -> list[str]:
        async with AsyncAlmanac(url) as other:
            return [memory["content"] async for memory in other.memory.each("messages", **found)]

    assert asyncio.run(later()) == contents
    assert list(almanac.memory.each(None, criteria={"userId": "user:user:nobody"})) == []


def test_a_memory_is_deleted_and_restored_at_the_version_that_is_known(almanac: Almanac) -> None:
    kept = almanac.memory.add("messages", "whales sing", about(str(uuid.uuid4()), 0))
    almanac.memory.update(kept["id"], content="whales sing at night")
    with pytest.raises(AlmanacRefusedError, match="version-changed"):
        almanac.memory.delete(kept["id"], version=1)
    deleted = almanac.memory.delete(kept["id"], version=2)
    with pytest.raises(AlmanacRefusedError, match="version-changed"):
        almanac.memory.restore(kept["id"], version=1)
    with pytest.raises(AlmanacRefusedError):
        almanac.memory.history(kept["id"])
    assert almanac.memory.history(kept["id"], include_deleted=True)["total"] >= 1
    almanac.memory.restore(kept["id"], version=deleted["version"])
    assert almanac.memory.history(kept["id"])["total"] >= 1


def test_sessions_what_they_used_and_missed(almanac: Almanac) -> None:
    session = str(uuid.uuid4())
    almanac.record("web_search", 12, session_id=session)
    assert session in [found["sessionId"] for found in almanac.sessions(limit=1000)["items"]]
    assert len(almanac.sessions(limit=1)["items"]) == 1
    assert almanac.report_usage(session_id=session, tokensIn=5, tokensOut=2)["totalTokens"] == 7
    assert session in [found["sessionId"] for found in almanac.usage()["sessions"]]
    events = almanac.tools.report_miss("web_search", session_id=session, message="search the web")["events"]
    assert [event["type"] for event in events] == ["missing_tool", "auto_retry"]
    assert almanac.match_presets(goal="research")["total"] >= 1
    assert almanac.match_presets(session_id=session, tool_history=("web_search",))["items"] is not None


def test_with_an_event_loop_it_is_the_same(url: str) -> None:
    async def run() -> None:
        async with AsyncAlmanac(url) as almanac:

            @almanac.timed
            async def py_async() -> str:
                await asyncio.sleep(0)
                return "done"

            assert list(await asyncio.gather(py_async(), py_async())) == ["done", "done"]
            with pytest.raises(asyncio.CancelledError):
                async with almanac.call("py_async"):
                    raise asyncio.CancelledError
            assert (await almanac.timing.get("py_async"))["items"]
            # As in a notebook: a loop runs, and the other client is used in it.
            with Almanac(url) as other:
                assert other.tools.get("web_search")

    asyncio.run(run())


def test_each_decorator_takes_its_own_kind(url: str) -> None:
    async def later() -> None: ...

    with pytest.raises(TypeError, match="AsyncAlmanac"):
        Almanac(url).timed(later)
    with pytest.raises(TypeError, match="an Almanac"):
        AsyncAlmanac(url).timed(lambda: None)


def test_a_tool_runs_without_a_daemon(caplog: pytest.LogCaptureFixture) -> None:
    almanac = Almanac("http://127.0.0.1:9", retry=Retry(attempts=1))

    @almanac.timed
    def alone() -> int:
        return 1

    assert alone() == 1
    assert "no estimate of alone" in caplog.text
    with pytest.raises(AlmanacUnreachableError):
        almanac.tools.get("x")


def answers(*replies: Any) -> tuple[Almanac, list[httpx.Request]]:
    """A client of a daemon that answers so, one after the other."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        reply = replies[len(sent) - 1]
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply, json={"recorded": 1, "timing": {}, "code": "store-busy"})

    http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://x")
    return Almanac(http=http, retry=Retry(attempts=3, pause=0.0)), sent


def test_what_is_safe_is_sent_again_with_the_same_key() -> None:
    almanac, sent = answers(503, httpx.ReadError("broken"), 201)
    almanac.record("x", 1)
    assert len({request.content for request in sent}) == 1
    assert b"idempotency_key" in sent[0].content
    almanac, sent = answers(429, 429, 429)
    with pytest.raises(AlmanacRefusedError):
        almanac.timing.estimate("x")
    assert len(sent) == 3
    almanac, sent = answers(422)
    with pytest.raises(AlmanacRefusedError):
        almanac.timing.estimate("x")
    assert len(sent) == 1


def test_what_may_have_been_done_is_not_sent_again() -> None:
    almanac, sent = answers(httpx.ReadError("broken"))
    with pytest.raises(AlmanacUnreachableError):
        almanac.memory.update("x", content="y")
    assert len(sent) == 1
    reports: list[Callable[[Almanac], Any]] = [
        lambda to: to.report_usage(),
        lambda to: to.tools.report_miss("x"),
        lambda to: to.memory.restore("x", version=1),
    ]
    for report in reports:
        almanac, sent = answers(httpx.ReadError("broken"))
        with pytest.raises(AlmanacUnreachableError):
            report(almanac)
        assert len(sent) == 1
    almanac, sent = answers(httpx.ConnectError("refused"), 200)
    almanac.memory.update("x", content="y")
    assert len(sent) == 2


def test_the_client_without_a_loop_is_made_of_the_other() -> None:
    make = runpy.run_path(str(PACKAGE / "scripts" / "make_sync.py"))["make"]
    source = PACKAGE / "src" / "almanac_client"
    pytest.importorskip("ruff")
    assert make((source / "_aio.py").read_text()) == (source / "_sync.py").read_text(), "run scripts/make_sync.py"


EXAMPLES = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_readme_runs(example: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAC_URL", url)
    # Each run of the tests has a thread of its own.
    exec(compile(example.replace('"readme"', f'"{uuid.uuid4()}"'), "README.md", "exec"), {"__name__": "readme"})


def test_the_readme_has_examples() -> None:
    assert len(EXAMPLES) >= 5


def test_cells_of_a_notebook_run_within_a_loop(url: str) -> None:
    async def cell() -> int:
        # A notebook runs each cell within its own loop, so the client must not start another.
        almanac = Almanac(url)

        @almanac.timed(tool="notebook_cell")
        def tool() -> str:
            return "done"

        assert tool() == "done"
        async with AsyncAlmanac(url) as later:
            return int((await later.timing.estimate("notebook_cell"))["samples"])

    assert asyncio.run(cell()) == 1
