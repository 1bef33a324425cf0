"""When a call is sent again, and for how long."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest

from almanac_client import (
    Almanac,
    AlmanacError,
    AlmanacRefusedError,
    AlmanacTimeoutError,
    AlmanacUnreachableError,
    AsyncAlmanac,
    Budget,
    Retry,
)

REFUSED = httpx.ConnectError("refused")


def busy(seconds: str) -> httpx.Response:
    """The answer of a daemon that names a pause."""
    return httpx.Response(503, headers={"retry-after": seconds})


def problem(status: int, code: str) -> httpx.Response:
    """The answer of a daemon that says why it refuses."""
    return httpx.Response(status, json={"status": status, "code": code, "detail": "no"})


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that are made; they take no time."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


@pytest.mark.parametrize(
    ("named", "shortest", "longest"),
    [
        ("3600", 5.0, 5.0),
        ("9" * 400, 5.0, 5.0),
        ("3", 3.0, 3.0),
        ("0", 0.1, 0.15),
        ("soon", 0.1, 0.15),
        ("²", 0.1, 0.15),
    ],
)
def test_a_pause_that_is_asked_for_is_bounded(named: str, shortest: float, longest: float) -> None:
    pause = Retry().pause_after(0, httpx.Response(503, headers=[(b"retry-after", named.encode("latin-1"))]))
    assert pause is not None
    assert shortest <= pause <= longest


@pytest.mark.parametrize(
    ("is_safe", "outcome", "is_repeated"),
    [
        (True, httpx.ReadError("broken"), True),
        (False, httpx.ReadError("broken"), False),
        (False, httpx.ConnectTimeout("late"), True),
        (False, httpx.PoolTimeout("late"), True),
        (False, httpx.ReadTimeout("late"), False),
        (False, REFUSED, True),
        (True, httpx.LocalProtocolError("a bad header"), False),
        (True, httpx.UnsupportedProtocol("no scheme"), False),
        (True, httpx.Response(503), True),
        (False, httpx.Response(503), False),
        (False, problem(503, "store-unavailable"), False),
        (False, problem(503, "too-many-streams"), False),
        (False, problem(429, "store-busy"), True),
        (False, httpx.Response(429), True),
        (False, problem(503, "stopping"), True),
        (False, problem(503, "too-busy"), True),
        (False, problem(503, "too-many-connections"), True),
        (False, problem(503, "issuer-unavailable"), True),
        (False, problem(401, "stopping"), False),
        (True, httpx.Response(500), False),
    ],
)
def test_what_is_sent_again(is_safe: bool, outcome: Any, is_repeated: bool) -> None:
    assert (Retry().next_pause(0, 0.0, is_safe, outcome) is not None) == is_repeated


@pytest.mark.parametrize(
    ("retry", "shortest", "longest"),
    [
        (Retry(), 3.0, 4.0),
        (Retry(pause=0.0), 3.0, 4.0),
        (Retry(connecting=1.0), 0.3, 1.0),
        (Retry(connecting=0.0), 0.3, 0.45),
        (Retry(attempts=1), 0.0, 0.0),
    ],
)
def test_a_daemon_that_does_not_listen_is_looked_for(retry: Retry, shortest: float, longest: float) -> None:
    elapsed = 0.0
    for attempt in itertools.count():
        pause = retry.next_pause(attempt, elapsed, False, REFUSED)
        if pause is None:
            break
        elapsed += pause
    assert shortest <= elapsed <= longest


def client(*outcomes: Any, **options: Any) -> tuple[Almanac, list[httpx.Request]]:
    """A client of a daemon that answers so, one after the other, and the last one from then on."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        outcome = outcomes[min(len(sent), len(outcomes)) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        assert isinstance(outcome, httpx.Response)
        if outcome.content:
            return httpx.Response(outcome.status_code, content=outcome.content)
        return httpx.Response(outcome.status_code, headers=outcome.headers, json={"timing": {}, "recorded": 1})

    http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://x")
    return Almanac(http=http, **options), sent


def test_a_restart_is_outlasted(pauses: list[float]) -> None:
    almanac, sent = client(*[REFUSED] * 6, httpx.Response(200))
    almanac.timing.estimate("x")
    assert (len(sent), len(pauses)) == (7, 6)


def test_a_daemon_that_was_looked_for_may_be_busy(pauses: list[float]) -> None:
    almanac, sent = client(*[REFUSED] * 4, busy("0"), httpx.ReadError("broken"), httpx.Response(200))
    almanac.timing.estimate("x")
    assert (len(sent), len(pauses)) == (7, 6)


@pytest.mark.parametrize(
    ("ask", "is_safe"),
    [
        (lambda to: to.report_usage(session_id="s", tokensIn=1), False),
        (lambda to: to.tools.report_miss("x"), False),
        (lambda to: to.memory.update("x", content="y"), False),
        (lambda to: to.memory.delete("x"), False),
        (lambda to: to.memory.restore("x", version=3), False),
        (lambda to: to.memory.restore("x"), True),
        (lambda to: to.memory.add("documents", "x", {}), True),
        (lambda to: to.record("x", 5), True),
    ],
)
def test_what_may_have_been_done_is_not_sent_again(
    ask: Callable[[Almanac], Any], is_safe: bool, pauses: list[float]
) -> None:
    for outcome, attempts in (
        (problem(503, "store-unavailable"), 3 if is_safe else 1),
        (httpx.Response(503), 3 if is_safe else 1),
        (problem(503, "stopping"), 3),
        (problem(429, "store-busy"), 3),
    ):
        almanac, sent = client(outcome)
        with pytest.raises(AlmanacRefusedError):
            ask(almanac)
        assert len(sent) == attempts


@pytest.mark.parametrize("outcome", [busy("3600"), REFUSED, httpx.ReadError("broken")])
def test_no_pause_ends_after_the_timeout(outcome: Any, pauses: list[float]) -> None:
    almanac, sent = client(outcome, timeout=0.05)
    with pytest.raises(AlmanacError):
        almanac.timing.estimate("x")
    assert (len(sent), pauses) == (1, [])


def test_a_whole_call_has_one_timeout() -> None:
    almanac, sent = client(busy("0"), httpx.Response(200), timeout=5.0, retry=Retry(pause=0.01))
    almanac.timing.estimate("x")
    first, second = (request.extensions["timeout"]["read"] for request in sent)
    assert 0 < second < first <= 5.0


def test_a_client_that_is_given_keeps_its_timeouts() -> None:
    sent: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, json={"timing": {}})

    http = httpx.Client(transport=httpx.MockTransport(answer), base_url="http://x", timeout=120.0)
    Almanac(http=http).timing.estimate("x")
    assert sent == [120.0]


def test_what_surrounds_a_tool_has_a_budget() -> None:
    almanac, sent = client(httpx.Response(200), budget=Budget(estimate=0.5, record=0.25))
    almanac.timed(tool="x")(int)()
    estimate, record = (request.extensions["timeout"]["read"] for request in sent)
    assert 0.25 < estimate <= 0.5
    assert 0 < record <= 0.25


def test_a_tool_does_not_wait_for_a_daemon_to_listen(pauses: list[float]) -> None:
    almanac, sent = client(REFUSED)
    almanac.timed(tool="x")(int)()
    assert [request.url.path for request in sent] == ["/v1/estimate"] + ["/v1/executions"] * Retry().attempts
    assert sum(pauses) < 0.5


def test_no_answer_in_time_is_told_as_such() -> None:
    almanac, _ = client(httpx.ReadTimeout("late"), retry=Retry(attempts=1))
    with pytest.raises(AlmanacUnreachableError) as late:
        almanac.timing.estimate("x")
    assert isinstance(late.value, AlmanacTimeoutError)
    assert late.value.code == "timeout"


class Drip(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that ends only after a test has failed."""

    def __init__(self) -> None:
        self._end = time.monotonic() + 10

    def __iter__(self) -> Iterator[bytes]:
        while time.monotonic() < self._end:
            yield b" "

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in self:
            yield part


def test_an_answer_that_comes_in_drops_ends_with_the_timeout() -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, stream=Drip()))
    with httpx.Client(transport=transport, base_url="http://x") as http, pytest.raises(AlmanacTimeoutError):
        Almanac(http=http, timeout=0.05).timing.estimate("x")

    async def later() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            await AsyncAlmanac(http=http, timeout=0.05).timing.estimate("x")

    with pytest.raises(AlmanacTimeoutError):
        asyncio.run(later())


def test_an_answer_that_is_packed_is_unpacked() -> None:
    body = gzip.compress(b'{"timing": {"samples": 1}}')
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(body))
    )
    with httpx.Client(transport=transport, base_url="http://x") as http:
        assert Almanac(http=http).timing.estimate("x")["samples"] == 1


def test_a_daemon_that_asks_for_an_hour_is_asked_again(pauses: list[float]) -> None:
    almanac, sent = client(busy("3600"), timeout=60.0)
    with pytest.raises(AlmanacRefusedError):
        almanac.timing.estimate("x")
    assert (len(sent), pauses) == (3, [5.0, 5.0])
