"""Makes the client without an event loop from the one with: `python scripts/make_sync.py` writes `_sync.py`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "almanac_client"

WORDS = [
    (
        r"The client for programs that run an event loop\. .*\.",
        "The client for everybody else. Made from `_aio.py` by `scripts/make_sync.py`; edits are lost.",
    ),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\bawait asyncio\.sleep", "time.sleep"),
    (r"\bimport asyncio\b", "import time"),
    (r"\bawait ", ""),
    (r"\bAsyncIterator, Iterable\b", "Iterable, Iterator"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bfor (\w+) in (.+):\n +yield \1\n", r"yield from \2\n"),
    (r"httpx\.AsyncClient", "httpx.Client"),
    (r"\bAsync(Almanac|Connection|Http|ToolService|TimingService|MemoryService|Bookkeeper|Timed)\b", r"\1"),
    (r"\baclose\b", "close"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
]


def make(text: str) -> str:
    """The text with everything that waits taken out."""
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    # Shorter names: what was wrapped may fit one line.
    formatter = [sys.executable, "-m", "ruff", "format", "--config", str(SOURCE.parents[1] / "pyproject.toml"), "-"]
    return subprocess.run(formatter, input=text, capture_output=True, check=True, text=True).stdout


if __name__ == "__main__":
    (SOURCE / "_sync.py").write_text(make((SOURCE / "_aio.py").read_text()))
