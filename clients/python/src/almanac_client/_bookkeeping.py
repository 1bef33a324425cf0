"""What is asked before a tool runs and told after it: whatever goes wrong with that is logged, and the tool runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from .types import Execution, Timing

if TYPE_CHECKING:
    from ._aio import AsyncTimingService
    from ._sync import TimingService

logger = logging.getLogger("almanac_client")


def no_estimate(tool_name: str, error: Exception) -> None:
    """Says that a tool runs without an estimate."""
    logger.warning("no estimate of %s: %s", tool_name, _reason(error))


def not_recorded(tool_name: str, error: Exception) -> None:
    """Says that nobody will learn of a call."""
    logger.warning("a call of %s is not recorded: %s", tool_name, _reason(error))


def _reason(error: Exception) -> str:
    return str(error) or repr(error)


class Bookkeeper:
    """Estimates and records that never fail."""

    def __init__(self, timing: TimingService) -> None:
        self._timing = timing

    def estimate(self, tool_name: str, **asked: Any) -> Timing | None:
        """How long the call will take; None if that cannot be learnt."""
        try:
            return self._timing.estimate(tool_name, **asked)
        except Exception as error:
            no_estimate(tool_name, error)
            return None

    def record(self, execution: Execution) -> None:
        """Records a call that ended, if that can be done."""
        try:
            self._timing.record(execution)
        except Exception as error:
            not_recorded(execution["tool_name"], error)


class AsyncBookkeeper:
    """The same with an event loop."""

    def __init__(self, timing: AsyncTimingService) -> None:
        self._timing = timing

    async def estimate(self, tool_name: str, **asked: Any) -> Timing | None:
        """How long the call will take; None if that cannot be learnt."""
        try:
            return await self._timing.estimate(tool_name, **asked)
        except Exception as error:
            no_estimate(tool_name, error)
            return None

    async def record(self, execution: Execution) -> None:
        """Records a call that ended, if that can be done."""
        try:
            await self._timing.record(execution)
        except Exception as error:
            not_recorded(execution["tool_name"], error)
