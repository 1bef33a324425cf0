"""A daemon of one's own: the binary is `ALMANACD`, else the repository's debug build."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from almanac_client import Almanac

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Daemon:
    """Where the daemon listens."""

    url: str
    socket: str


@pytest.fixture(scope="session")
def daemon() -> Iterator[Daemon]:
    """A daemon on the shipped documents."""
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    binary = os.environ.get("ALMANACD", f"{target}/debug/almanacd")
    # Short, because a socket's path is limited to 107 bytes.
    root = tempfile.mkdtemp(prefix="almanac-")
    Path(root, "almanac.yaml").write_text("")
    own = {name: value for name, value in os.environ.items() if not name.startswith("ALMANAC_")}
    arguments = ["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--config", f"{root}/almanac.yaml"]
    arguments += ["--state-dir", f"{root}/state", "--admin-socket", f"{root}/a.sock"]
    arguments += ["--tool-metadata", str(ROOT / "tool_metadata")]
    with open(f"{root}/log", "w+") as log:
        process = subprocess.Popen([binary, *arguments], stderr=subprocess.PIPE, stdout=log, env=own, text=True)
        assert process.stderr is not None
        found = None
        for line in process.stderr:
            told = json.loads(line)
            fields = told.get("fields", told)
            if fields.get("message") == "listening" and fields.get("http"):
                found = fields["http"]
                break
        assert found is not None, "the daemon ended"
        try:
            yield Daemon(found, f"{root}/a.sock")
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def url(daemon: Daemon) -> str:
    """Its address."""
    return daemon.url


@pytest.fixture
def almanac(url: str) -> Iterator[Almanac]:
    """A client of it."""
    with Almanac(url) as client:
        yield client
