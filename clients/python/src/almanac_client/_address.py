"""Where the daemon is, and what it is shown to be let in."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field
from typing import Any

import httpx

DEFAULT_URL = "http://127.0.0.1:7311"

#: What a header field can have in one word.
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True)
class Address:
    """A daemon by its URL, or by its unix socket if there is one."""

    url: httpx.URL
    socket: str | None
    token: str | None = field(repr=False)

    def options(self) -> dict[str, Any]:
        """What a client of httpx needs to know; the way through a socket is its transport."""
        return {
            "base_url": self.url,
            "headers": {"authorization": f"Bearer {self.token}"} if self.token else {},
            # A proxy of the environment cannot reach what this machine calls itself.
            "mounts": {"http://": None, "https://": None} if _is_loopback(self.url.host) else {},
        }


def address(url: str | None, socket: str | os.PathLike[str] | None, token: str | None) -> Address:
    """What is given, else the environment's `ALMANAC_URL` and `ALMANAC_TOKEN`, if they are not empty.

    Raises a TypeError if a URL is given as well as a socket, and a ValueError for a token that cannot be sent.
    """
    if url is not None and socket is not None:
        raise TypeError("either url or socket says where the daemon is")
    token = token if token is not None else os.environ.get("ALMANAC_TOKEN")
    if socket is not None:
        return Address(httpx.URL("http://localhost"), os.fspath(socket), _checked(token))
    url = url if url is not None else os.environ.get("ALMANAC_URL") or DEFAULT_URL
    return Address(httpx.URL(url), None, _checked(token))


def _checked(token: str | None) -> str | None:
    token = token.strip() if token is not None else ""
    if token and not _TOKEN.fullmatch(token):
        raise ValueError("the token has spaces or other characters that no token can have; is it the right one?")
    return token or None


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
