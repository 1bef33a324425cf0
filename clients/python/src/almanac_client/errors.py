"""What can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AlmanacError(Exception):
    """Any failure of a call to the daemon."""

    #: What to decide by; it keeps its meaning. The daemon's own, or one of this client.
    code = ""


class AlmanacArgumentError(AlmanacError, ValueError):
    """What was to be sent cannot be."""

    code = "argument"


class AlmanacUnreachableError(AlmanacError):
    """No answer came: nothing listens, or the connection broke."""

    code = "unreachable"


class AlmanacTimeoutError(AlmanacUnreachableError):
    """No answer came in time."""

    code = "timeout"


class AlmanacAnswerError(AlmanacError):
    """An answer that the daemon cannot have given, such as a proxy's page."""

    code = "not-almanac"

    def __init__(self, reason: str, status: int = 0) -> None:
        #: The HTTP status; 0 if the answer could not even be read.
        self.status = status
        super().__init__(f"{reason}; is that the daemon?")


class AlmanacRefusedError(AlmanacError):
    """The daemon answered with a problem document (RFC 9457).

    The code is `not-almanac` if there was none in the answer.
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code") or "not-almanac")
        self.detail = str(problem.get("detail") or problem.get("title") or "no reason is given; is that the daemon?")
        #: Every fault of the body: `pointer`, `code` and `detail`.
        self.errors: list[dict[str, str]] = [fault for fault in _items(problem, "errors") if isinstance(fault, dict)]
        #: Names that may have been meant.
        self.near: list[str] = [str(name) for name in _items(problem, "near")]
        lines = [f"{status} {self.code}: {self.detail}"]
        lines += [f"  {error.get('pointer', '')}: {error.get('detail', '')}" for error in self.errors]
        if self.near:
            lines.append(f"  did you mean {' or '.join(self.near)}?")
        super().__init__("\n".join(lines))


def _items(problem: Mapping[str, Any], key: str) -> list[Any]:
    found = problem.get(key)
    return found if isinstance(found, list) else []
