"""How long a tool waits for what is asked before it and told after it."""

from __future__ import annotations

from dataclasses import dataclass

from . import _deadline


@dataclass(frozen=True)
class Budget:
    """How long a daemon that does not answer may delay a tool, in seconds of more than 0, repetitions included."""

    #: For the estimate before a call, which is asked for once.
    estimate: float = 1.0
    #: For the record after it.
    record: float = 2.0

    def __post_init__(self) -> None:
        """Raises an `AlmanacArgumentError` for what cannot be waited for."""
        _deadline.checked(self.estimate, "estimate")
        _deadline.checked(self.record, "record")
