"""When a call has to have ended."""

from __future__ import annotations

import math
import time

import httpx

from .errors import AlmanacArgumentError

#: The longest timeout, in seconds: what systems wait for, counted in ms.
_LONGEST = (2**31 - 1) / 1000

#: The shortest wait, in seconds: httpx takes none of 0.
_SHORTEST = 0.001


def checked(seconds: float, name: str) -> float:
    """The seconds. Raises an `AlmanacArgumentError` if nothing can be waited for so long."""
    if not 0 < seconds <= _LONGEST:
        raise AlmanacArgumentError(f"{name} cannot be {seconds}: it is in seconds, of more than 0, at most {_LONGEST}")
    return seconds


class Deadline:
    """Some seconds from now, or never."""

    def __init__(self, seconds: float | None) -> None:
        self._begun = time.monotonic()
        self._seconds = math.inf if seconds is None else seconds

    def elapsed(self) -> float:
        """Seconds since the call began."""
        return time.monotonic() - self._begun

    def left(self) -> float:
        """Seconds until the call has to have ended; below 0 afterwards."""
        return self._seconds - self.elapsed()

    def check(self) -> None:
        """Raises httpx's ReadTimeout afterwards: what comes in drops ends none of its waits."""
        if self.left() < 0:
            raise httpx.ReadTimeout("the answer takes too long")

    def limit(self, timeout: httpx.Timeout) -> httpx.Timeout:
        """These timeouts, but none that ends later."""
        if self._seconds == math.inf:
            return timeout
        left = max(self.left(), _SHORTEST)
        return httpx.Timeout(
            **{what: left if seconds is None else min(seconds, left) for what, seconds in timeout.as_dict().items()}
        )
