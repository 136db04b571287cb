"""Servers of their own: who may listen where, and what happens when somebody asks too often."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from lectern.api.addresses import networks
from lectern.api.auth import CALLER, Authenticator
from lectern.api.gate import Gate
from lectern.api.rate_windows import MAX_BAD_KEYS, Limits, RateWindows
from lectern.api.readers import Readers
from lectern.domain.keys import KeyRequest
from lectern.store.keys import SqlKeys
from tests.databases import fresh_database
from tests.keys.conftest import PAGE, Site, keys_command
from tests.served import LECTERN, serving


def test_an_address_that_others_reach_needs_a_key(tmp_path: Path) -> None:
    """Refused at start, in one line with advice; nothing was served meanwhile."""
    command = [LECTERN, "serve", "--host", "0.0.0.0", "--port", "0"]
    home = {"LECTERN_HOME": str(tmp_path / "home")}
    result = subprocess.run(
        command, env={**os.environ, **home}, capture_output=True, text=True, check=False, timeout=120
    )  # a server would not end by itself

    assert result.returncode == 2
    assert result.stdout == ""
    assert [line for line in result.stderr.splitlines() if "lectern keys create" in line] == result.stderr.splitlines()


@pytest.fixture(scope="module")
def limited(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server that everybody may reach, with the limits that are set without a setting."""
    home = tmp_path_factory.mktemp("limited") / "home"
    shutil.copytree(site.home, home, ignore=shutil.ignore_patterns("owner", "server.json"))
    settings = {"LECTERN_HOME": str(home), "LECTERN_HOSTS": "lectern.example"}
    command = [LECTERN, "serve", "--host", "0.0.0.0", "--port", "0"]
    with serving(command, env={**os.environ, **settings}) as address:
        yield Site(address.replace("0.0.0.0", "127.0.0.1"), home, site.books, site.keys, site.web)


def test_a_burst_gets_exactly_a_hundred(limited: Site) -> None:
    """K4: of 150 at once, from one key under two headers, 100 are answered; the rest hear when to come back."""

    async def burst() -> list[httpx.Response]:
        key = limited.keys["only-read"]
        ways = [{"X-API-Key": key}, {"Authorization": f"Bearer {key}", "X-Forwarded-For": "9.9.9.9"}]
        async with httpx.AsyncClient(base_url=limited.address, timeout=120) as client:
            return await asyncio.gather(*(client.get("/books", headers=ways[n % 2]) for n in range(150)))

    answers = asyncio.run(burst())
    late = [response for response in answers if response.status_code == 429]

    assert Counter(response.status_code for response in answers) == {200: 100, 429: 50}
    remaining = sorted(
        int(response.headers["ratelimit-remaining"]) for response in answers if response.status_code == 200
    )
    assert remaining == list(range(100))
    for response in late:
        assert response.headers["content-type"] == "application/problem+json"
        assert (response.headers["ratelimit-limit"], response.headers["ratelimit-remaining"]) == ("100", "0")
        assert response.headers["ratelimit-policy"] == "100;w=60"
        assert 1 <= int(response.headers["retry-after"]) <= 61
        assert f"{response.headers['retry-after']} s" in response.json()["detail"]


def test_other_keys_and_what_is_not_counted_go_on(limited: Site) -> None:
    """A full key is its own matter; health, page and description have no standing at all."""
    assert limited.call("GET", "/books", "alpha").headers["ratelimit-remaining"] == "99"
    for path in ("/health/live", "/openapi.json", "/docs", "/", "/page/main.js"):
        response = limited.call("GET", path, "only-read")
        assert response.status_code == 200
        assert not [name for name in response.headers if name.startswith("ratelimit")]
    assert "ratelimit-limit" not in limited.call("GET", "/metrics", "only-read").headers


def test_many_bad_keys_from_one_address_are_slowed_down(limited: Site) -> None:
    """K5: after so many the answer is to wait; a claimed address helps nothing, and a good key is not concerned."""
    codes = [
        limited.call("GET", "/books", headers={"X-API-Key": f"guess{number}", "X-Forwarded-For": f"9.9.9.{number}"})
        for number in range(MAX_BAD_KEYS + 5)
    ]

    assert [response.status_code for response in codes] == [401] * MAX_BAD_KEYS + [429] * 5
    assert int(codes[-1].headers["retry-after"]) > 0
    assert limited.call("GET", "/books", "alpha").status_code == 200
    assert limited.call("GET", "/books").status_code == 401


def test_known_host_names_are_answered_and_no_others(limited: Site) -> None:
    """Loopback, the bound address and what is listed; with a good key too."""
    for host, status in (("lectern.example", 200), ("LECTERN.example:80", 200), ("evil.example", 400), ("", 400)):
        assert limited.call("GET", "/books", "alpha", headers={"Host": host}).status_code == status, host


def test_commands_find_a_server_that_listens_everywhere(limited: Site) -> None:
    """By its loopback address, and without a key."""
    result = keys_command(limited.home, "list")

    assert "  active   read  every book  " in result.stdout


async def echo_owner(scope: Scope, receive: Receive, send: Send) -> None:
    """Says who was let in."""
    await PlainTextResponse(scope[CALLER].owner)(scope, receive, send)


@asynccontextmanager
async def gate(folder: Path, *, most: int, proxies: tuple[str, ...] = (), local: bool = True) -> AsyncIterator[Any]:
    """The gate alone, and its keys; requests come from 127.0.0.1."""
    async with fresh_database("sqlite", folder) as engine:
        keys = SqlKeys(engine)
        authenticator, limits = Authenticator(keys, Readers(keys), local), Limits(RateWindows(), most, 2)
        app = Gate(
            echo_owner, authenticator=authenticator, limits=limits, proxies=networks(proxies), unguarded=frozenset()
        )
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 5))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            yield client, keys


@pytest.mark.parametrize(("proxies", "admitted"), [((), 3), (("127.0.0.1",), 8)])
async def test_a_claimed_address_counts_only_from_a_listed_proxy(
    tmp_path: Path, proxies: tuple[str, ...], admitted: int
) -> None:
    """K5: without keys an address has the limit; eight claimed ones are one, unless the proxy is listed."""
    async with gate(tmp_path, most=3, proxies=proxies) as (client, _):
        responses = [await client.get("/x", headers={"X-Forwarded-For": f"9.9.9.{number}"}) for number in range(8)]

    assert sum(1 for response in responses if response.status_code == 200) == admitted


async def test_no_key_is_needed_until_there_is_one(tmp_path: Path) -> None:
    """On loopback; from the first key on everybody needs one, and taking it back opens nothing."""
    async with gate(tmp_path, most=0) as (client, keys):
        before = await client.get("/x")
        issued = await keys.create(KeyRequest(name="first"))
        without = await client.get("/x")
        with_it = await client.get("/x", headers={"X-API-Key": issued.text})
        await keys.revoke(issued.key.key_id)
        after = await client.get("/x")

    assert (before.text, without.status_code, with_it.text) == ("local", 401, issued.key.owner)
    assert after.status_code == 401


async def test_elsewhere_a_key_is_needed_even_if_there_is_none(tmp_path: Path) -> None:
    """Were the keys to vanish under a server that others reach, it would stay shut."""
    async with gate(tmp_path, most=0, local=False) as (client, _):
        assert (await client.get("/x")).status_code == 401


async def test_readers_are_limited_each_and_together(tmp_path: Path) -> None:
    """One reader has two a minute here, the key five; asking for readers without end does not help."""
    key_request = KeyRequest(name="w", kind="publishable", books=frozenset({"b"}), origins=frozenset({PAGE}))
    async with gate(tmp_path, most=5) as (client, keys):
        issued = await keys.create(key_request)
        base = {"X-API-Key": issued.text, "Origin": PAGE}
        tokens = [(await Readers(keys).token(issued.key.key_id)).text for _ in range(3)]
        responses = [
            (await client.get("/x", headers={**base, "X-Reader-Token": token})).status_code
            for token in tokens
            for _ in range(3)
        ]

    assert responses == [200, 200, 429, 200, 200, 429, 200, 429, 429]


async def test_a_wrong_page_counts_as_a_bad_key(tmp_path: Path) -> None:
    """A publishable key is public: elsewhere it must not be a way to ask without being counted."""
    key_request = KeyRequest(name="w", kind="publishable", books=frozenset({"b"}), origins=frozenset({PAGE}))
    async with gate(tmp_path, most=5) as (client, keys):
        key = (await keys.create(key_request)).text
        statuses = [(await client.get("/x", headers={"X-API-Key": key})).status_code for _ in range(MAX_BAD_KEYS + 1)]

    assert statuses == [403] * MAX_BAD_KEYS + [429]
