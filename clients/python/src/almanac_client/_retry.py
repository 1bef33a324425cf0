"""When a call is sent again."""

from __future__ import annotations

import random
from dataclasses import dataclass

import httpx

from . import _call

#: Answers that say that it may go better later.
_TRY_AGAIN = (429, 503)

#: Codes of problems that are told before anything of a request is done. The others of a 503 leave that open: a change
#: may be stored although the database is lost before it says so, and a stream is refused when its answer is there.
_NOTHING_WAS_DONE = ("issuer-unavailable", "stopping", "store-busy", "too-busy", "too-many-connections")

#: The shortest and the longest pause until a daemon is looked for again that does not listen, in seconds.
_CONNECTING_PAUSES = (0.05, 1.0)


@dataclass(frozen=True)
class Retry:
    """How often, and after which pauses, a call is sent again; never beyond its timeout."""

    #: How often it is sent in all; 1 sends nothing again.
    attempts: int = 3
    #: The first pause in seconds; each further one is twice as long.
    pause: float = 0.1
    #: The longest pause in seconds, whatever the daemon asks for.
    longest_pause: float = 5.0
    #: For how many seconds a daemon that does not listen is looked for, as while it is restarted; 0 is for `attempts`.
    connecting: float = 4.0

    def pause_after(self, attempt: int, response: httpx.Response | None) -> float | None:
        """Seconds to wait after the attempt, 0-based; None if there is no further one."""
        if attempt + 1 >= self.attempts:
            return None
        if response is not None and response.status_code not in _TRY_AGAIN:
            return None
        named = response.headers.get("retry-after", "") if response is not None else ""
        asked = float(named) if named.isascii() and named.isdigit() else 0.0
        return min(max(self._growing(self.pause, attempt), asked), self.longest_pause)

    def next_pause(
        self, attempt: int, elapsed: float, is_safe: bool, outcome: httpx.Response | httpx.TransportError
    ) -> float | None:
        """Seconds to wait after an attempt, `elapsed` seconds after the first; None if there is no further one."""
        if isinstance(outcome, httpx.Response):
            return self.pause_after(attempt, outcome) if is_safe or _was_not_done(outcome) else None
        if isinstance(outcome, (httpx.LocalProtocolError, httpx.UnsupportedProtocol)):
            return None
        if isinstance(outcome, httpx.ConnectError):
            return self._pause_to_connect(attempt, elapsed)
        was_not_sent = isinstance(outcome, (httpx.ConnectTimeout, httpx.PoolTimeout))
        return self.pause_after(attempt, None) if is_safe or was_not_sent else None

    def _pause_to_connect(self, attempt: int, elapsed: float) -> float | None:
        shortest, longest = _CONNECTING_PAUSES
        pause = min(self._growing(max(self.pause, shortest), attempt), longest)
        if self.attempts > 1 and elapsed + pause <= self.connecting:
            return pause
        return self.pause_after(attempt, None)

    @staticmethod
    def _growing(pause: float, attempt: int) -> float:
        return float(pause * 2.0**attempt * (1 + random.random() / 2))


def _was_not_done(response: httpx.Response) -> bool:
    """Is it certain that what was asked was not done, not even in part?"""
    told = _call.json_object(response)
    return response.status_code == 429 or (told is not None and told.get("code") in _NOTHING_WAS_DONE)
