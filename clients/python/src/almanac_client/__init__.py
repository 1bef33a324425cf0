"""Client of Almanac, the metadata daemon for AI agents."""

from ._aio import AsyncAlmanac
from ._call import Retry
from ._sync import Almanac
from ._timed import OngoingCall
from .errors import AlmanacAnswerError, AlmanacError, AlmanacRefusedError, AlmanacUnreachableError

__all__ = [
    "Almanac",
    "AlmanacAnswerError",
    "AlmanacError",
    "AlmanacRefusedError",
    "AlmanacUnreachableError",
    "AsyncAlmanac",
    "OngoingCall",
    "Retry",
]
