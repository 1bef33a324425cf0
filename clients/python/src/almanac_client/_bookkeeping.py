"""What is asked before a tool runs and told after it: whatever goes wrong with that is logged, and the tool runs."""

from __future__ import annotations

import asyncio
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

    def __init__(self, estimates: TimingService, records: TimingService) -> None:
        self._estimates = estimates
        self._records = records

    def estimate(self, tool_name: str, **asked: Any) -> Timing | None:
        """How long the call will take; None if that cannot be learnt."""
        try:
            return self._estimates.estimate(tool_name, **asked)
        except Exception as error:
            no_estimate(tool_name, error)
            return None

    def record(self, execution: Execution) -> None:
        """Records a call that ended, if that can be done."""
        try:
            self._records.record(execution)
        except Exception as error:
            not_recorded(execution["tool_name"], error)

    def close(self) -> None:
        """Nothing is left to wait for."""


class AsyncBookkeeper:
    """The same with an event loop."""

    def __init__(self, estimates: AsyncTimingService, records: AsyncTimingService) -> None:
        self._estimates = estimates
        self._records = records
        self._recording: set[asyncio.Task[None]] = set()

    async def estimate(self, tool_name: str, **asked: Any) -> Timing | None:
        """How long the call will take; None if that cannot be learnt."""
        try:
            return await self._estimates.estimate(tool_name, **asked)
        except Exception as error:
            no_estimate(tool_name, error)
            return None

    async def record(self, execution: Execution, *, is_awaited: bool = True) -> None:
        """Records a call that ended, if that can be done. It is done all the same if the wait for it is cancelled."""
        recording = asyncio.create_task(self._record(execution))
        # A loop keeps no task from being collected.
        self._recording.add(recording)
        recording.add_done_callback(self._recording.discard)
        if is_awaited:
            await asyncio.shield(recording)

    async def _record(self, execution: Execution) -> None:
        try:
            await self._records.record(execution)
        except Exception as error:
            not_recorded(execution["tool_name"], error)
        except asyncio.CancelledError:
            logger.warning("a call of %s is not recorded: the event loop ends", execution["tool_name"])
            raise

    async def aclose(self) -> None:
        """Waits for what is being recorded in this loop."""
        if self._recording:
            loop = asyncio.get_running_loop()
            own = [recording for recording in list(self._recording) if recording.get_loop() is loop]
            await asyncio.gather(*own, return_exceptions=True)
