"""Where the daemon is looked for, and what of its token can be seen."""

from __future__ import annotations

import asyncio
import traceback
from typing import Any

import httpx
import pytest
from conftest import Daemon

from almanac_client import Almanac, AlmanacArgumentError, AlmanacUnreachableError, AsyncAlmanac, Retry
from almanac_client._address import address

SECRET = "alm_0123456789"

ONCE = Retry(attempts=1)


def client(almanac: Almanac) -> httpx.Client:
    """What sends its requests."""
    return almanac._http.client()


def shown(error: BaseException) -> str:
    """All that a log has of an error."""
    return "".join(traceback.format_exception(error))


@pytest.mark.parametrize("token", [SECRET, f"{SECRET}\n", f"\t {SECRET} \r\n"])
@pytest.mark.parametrize("is_given", [True, False])
def test_a_token_is_sent_without_white_space(token: str, is_given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAC_TOKEN", "" if is_given else token)
    almanac = Almanac(token=token if is_given else None)
    assert client(almanac).headers["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in repr(address(None, None, SECRET))


@pytest.mark.parametrize("token", ["", " \n"])
def test_an_empty_token_is_none(token: str) -> None:
    assert "authorization" not in client(Almanac(token=token)).headers


@pytest.mark.parametrize(
    "token", [f"{SECRET}\n{SECRET}", f"{SECRET} x", f"{SECRET}é", f"{SECRET}\x00", f"{SECRET}\ud83d"]
)
@pytest.mark.parametrize("make", [Almanac, AsyncAlmanac])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(token: str, make: Any) -> None:
    with pytest.raises(ValueError, match="is it the right one") as refused:
        make(token=token)
    assert SECRET not in shown(refused.value)


def test_a_header_that_cannot_be_sent_is_not_shown(url: str) -> None:
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {SECRET}\n"}) as http:
        with pytest.raises(AlmanacArgumentError, match="a header field") as refused:
            Almanac(http=http).tools.get("web_search")
        assert SECRET not in shown(refused.value)


LOCAL = ["http://127.0.0.1:9", "http://127.1.2.3:9", "http://localhost:9", "http://x.localhost:9", "http://[::1]:9"]


@pytest.mark.parametrize("proxy", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("url", LOCAL)
def test_this_machine_is_reached_without_proxy(url: str, proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(proxy, "http://proxy.invalid:3128")
    for scheme in ("http", "https"):
        found = client(Almanac(url.replace("http", scheme)))
        assert found._transport_for_url(httpx.URL(url)) is found._transport


def test_other_machines_are_reached_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:3128")
    found = client(Almanac("http://almanac.example"))
    assert found._transport_for_url(httpx.URL("http://almanac.example")) is not found._transport


def test_a_proxy_of_the_environment_does_not_keep_the_daemon_away(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    async def ask() -> str:
        async with AsyncAlmanac(url) as almanac:
            return str((await almanac.tools.get("web_search"))["name"])

    assert Almanac(url).tools.get("web_search")["name"] == asyncio.run(ask())


@pytest.mark.parametrize(
    ("variable", "url"), [("", "http://127.0.0.1:7311"), ("http://almanac.example:80", "http://almanac.example:80")]
)
def test_the_environment_names_the_daemon_unless_it_is_empty(
    variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALMANAC_URL", variable)
    assert client(Almanac()).base_url == httpx.URL(url)


def test_a_client_that_is_given_needs_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAC_TOKEN", "no token")
    with httpx.Client() as http:
        assert client(Almanac(http=http)) is http


def test_a_unix_socket_leads_to_the_daemon(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMANAC_URL", "http://127.0.0.1:9")

    async def ask() -> str:
        async with AsyncAlmanac(socket=daemon.socket) as almanac:
            return str((await almanac.tools.get("web_search"))["name"])

    assert Almanac(socket=daemon.socket).tools.get("web_search")["name"] == asyncio.run(ask())
    with pytest.raises(AlmanacUnreachableError):
        Almanac(socket=f"{daemon.socket}.none", retry=ONCE).tools.get("web_search")
    with pytest.raises(TypeError, match="either url or socket"):
        Almanac(daemon.url, socket=daemon.socket)
