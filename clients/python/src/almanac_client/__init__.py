"""Client of Almanac, the metadata daemon for AI agents."""

from ._aio import AsyncAlmanac
from ._budget import Budget
from ._retry import Retry
from ._sync import Almanac
from ._timed import OngoingCall
from .errors import (
    AlmanacAnswerError,
    AlmanacArgumentError,
    AlmanacError,
    AlmanacRefusedError,
    AlmanacTimeoutError,
    AlmanacUnreachableError,
)

__all__ = [
    "Almanac",
    "AlmanacAnswerError",
    "AlmanacArgumentError",
    "AlmanacError",
    "AlmanacRefusedError",
    "AlmanacTimeoutError",
    "AlmanacUnreachableError",
    "AsyncAlmanac",
    "Budget",
    "OngoingCall",
    "Retry",
]
