"""What cannot be sent, and arguments that are put where the daemon takes them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from almanac_client import Almanac, AlmanacArgumentError, AlmanacError, AlmanacRefusedError, AsyncAlmanac, Budget

HALF = "half \ud83d"


def client() -> tuple[Almanac, list[httpx.Request]]:
    """A client of a daemon that keeps what it is asked."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"timing": {}, "recorded": 1, "memories": []})

    return Almanac(http=httpx.Client(transport=httpx.MockTransport(answer), base_url="http://x")), sent


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda to: to.memory.add("messages", HALF, {}), "/content has half of a character, U+D83D at 5"),
        (lambda to: to.memory.add("messages", "x", {"a": [{"b": HALF}]}), "/metadata/a/0/b has half"),
        (lambda to: to.memory.add("messages", "x", {HALF: 1}), "a key of /metadata has half"),
        (lambda to: to.tools.qualify(HALF), "/message has half"),
        (lambda to: to.tools.get(HALF), "the name has half"),
        (lambda to: to.tools.list(HALF), "q has half"),
        (lambda to: to.record("x", float("nan")), "duration_ms cannot be nan"),
        (lambda to: to.record("x", float("inf")), "duration_ms cannot be inf"),
        (lambda to: to.record("x", float("-inf")), "duration_ms cannot be -inf"),
        (lambda to: to.tools.get("."), "the name cannot be '.'"),
        (lambda to: to.tools.relations(""), "the name cannot be ''"),
        (lambda to: to.session(".."), "the name cannot be '..'"),
        (lambda to: to.memory.restore(".."), "the name cannot be '..'"),
        (lambda to: to.memory.thread(".."), "the name cannot be '..'"),
        (lambda to: to.memory.add("..", "x", {}), "the name cannot be '..'"),
        (lambda to: to.memory.search(""), "the name cannot be ''"),
        (lambda to: to.memory.add("messages", "x", {}, idempotency_key="ключ"), "idempotency-key has characters"),
        (lambda to: to.memory.add("messages", "x", {}, idempotency_key="a\n"), "idempotency-key has characters"),
        (lambda to: to.memory.add("messages", "x", {"a": float("nan")}), "cannot be sent as JSON"),
        (lambda to: to.memory.add("messages", "x", "about"), "the metadata is a mapping, not a str"),
        (lambda to: to.memory.update("x", metadata=[1]), "the metadata is a mapping, not a list"),
        (lambda to: to.memory.search("messages", criteria="x"), "the criteria is a mapping, not a str"),
        (lambda to: to.enrich("x", "hello"), "the response is a mapping, not a str"),
        (lambda to: to.enrich("x", None), "the response is a mapping, not a NoneType"),
        (lambda to: to.enrich("x", [("a", 1)]), "the response is a mapping, not a list"),
    ],
)
def test_what_cannot_be_sent_is_told_before(ask: Callable[[Any], Any], said: str) -> None:
    almanac, sent = client()
    with pytest.raises(AlmanacArgumentError) as told:
        ask(almanac)
    assert said in str(told.value)
    assert isinstance(told.value, AlmanacError)
    assert isinstance(told.value, ValueError)
    assert sent == []


def test_a_key_is_sent_as_it_is_given() -> None:
    almanac, sent = client()
    for key in ("k", "", None):
        almanac.memory.add("messages", "x", {}, idempotency_key=key)
    given, empty, own = (request.headers["idempotency-key"] for request in sent)
    assert (given, empty) == ("k", "")
    assert uuid.UUID(own)


def test_an_empty_key_is_refused(almanac: Almanac) -> None:
    with pytest.raises(AlmanacRefusedError) as refused:
        almanac.memory.add("documents", "x", {"source": "web", "agentId": "agent:agent:a"}, idempotency_key="")
    assert refused.value.code == "invalid-idempotency-key"


def test_a_name_does_not_leave_its_path() -> None:
    almanac, sent = client()
    almanac.tools.get("../a?b#c%2e")
    almanac.tools.get("...")
    almanac.memory.search("../tools")  # type: ignore[arg-type]
    almanac.memory.add("a/../b", "x", {})  # type: ignore[arg-type]
    assert [request.url.raw_path for request in sent] == [
        b"/v1/tools/..%2Fa%3Fb%23c%252e",
        b"/v1/tools/...",
        b"/v1/memories/..%2Ftools/search",
        b"/v1/memories/a%2F..%2Fb",
    ]


@pytest.mark.parametrize("seconds", [0, 0.0, -1.0, float("nan"), float("inf"), 2.0**31 / 1000, 1e30])
def test_what_cannot_be_waited_for_is_refused_at_once(seconds: float) -> None:
    makings: list[Callable[[], Any]] = [
        lambda: Almanac(timeout=seconds),
        lambda: AsyncAlmanac(timeout=seconds),
        lambda: Almanac(http=httpx.Client(), timeout=seconds),
        lambda: Budget(estimate=seconds),
        lambda: Budget(record=seconds),
    ]
    for make in makings:
        with pytest.raises(AlmanacArgumentError, match=r"cannot be .*: it is in seconds"):
            make()


def test_what_can_be_waited_for_is_not_refused(url: str) -> None:
    for seconds in (10, (2**31 - 1) / 1000):
        with Almanac(url, timeout=seconds, budget=Budget(seconds, seconds)) as almanac:
            assert almanac.record("py_patient", 5)["recorded"] == 1


def test_the_mend_that_is_told_mends() -> None:
    pair = "a \ud83d\ude00 and half \ud83d"
    assert pair.encode("utf-16", "surrogatepass").decode("utf-16", "replace") == "a \U0001f600 and half \ufffd"


def test_text_is_sent_as_it_is() -> None:
    almanac, sent = client()
    almanac.tools.qualify("Größe \U0001f600")
    assert json.loads(sent[0].content) == {"message": "Größe \U0001f600"}
    assert sent[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("more", "context"),
    [
        ({"session_id": "s1"}, {"session_id": "s1"}),
        ({"session_id": "s1", "result_context": {"num_outputs": 2}}, {"num_outputs": 2, "session_id": "s1"}),
        ({"result_context": {"session_id": "s2"}}, {"session_id": "s2"}),
        ({"session_id": "s1", "result_context": None}, {"session_id": "s1"}),
    ],
)
def test_a_session_is_named_as_everywhere(more: dict[str, Any], context: dict[str, Any]) -> None:
    almanac, sent = client()
    almanac.metadata("x", **more)
    almanac.enrich("x", {}, **more)
    asked, enriched = (json.loads(request.content) for request in sent)
    assert asked["result_context"] == enriched["request"]["result_context"] == context


def test_the_daemon_takes_the_session(almanac: Almanac) -> None:
    session = str(uuid.uuid4())
    assert almanac.metadata("web_search", session_id=session)["timing"]
    assert almanac.enrich("web_search", {"a": 1}, session_id=session)["metadata"]
