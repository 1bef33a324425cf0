"""What can go wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class AlmanacError(Exception):
    """Any failure of a call to the daemon."""


class AlmanacUnreachableError(AlmanacError):
    """No answer came: nothing listens, or the connection broke."""


class AlmanacRefusedError(AlmanacError):
    """The daemon answered with a problem document (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        #: What to decide by; it keeps its meaning.
        self.code = str(problem.get("code", ""))
        self.detail = str(problem.get("detail", problem.get("title", "")))
        #: Every fault of the body: `pointer`, `code` and `detail`.
        self.errors: list[dict[str, str]] = list(problem.get("errors", []))
        #: Names that may have been meant.
        self.near: list[str] = list(problem.get("near", []))
        lines = [f"{status} {self.code}: {self.detail}"]
        lines += [f"  {error.get('pointer', '')}: {error.get('detail', '')}" for error in self.errors]
        if self.near:
            lines.append(f"  did you mean {' or '.join(self.near)}?")
        super().__init__("\n".join(lines))
