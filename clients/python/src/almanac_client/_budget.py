"""How long a tool waits for what is asked before it and told after it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """How long a daemon that does not answer may delay a tool, in seconds of more than 0, repetitions included."""

    #: For the estimate before a call, which is asked for once.
    estimate: float = 1.0
    #: For the record after it.
    record: float = 2.0
