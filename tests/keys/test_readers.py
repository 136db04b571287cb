"""Publishable keys, their readers and pages of other origins, against a real server."""

from __future__ import annotations

import time
import uuid

import httpx
import pytest

from tests.keys.conftest import PAGE, QUESTION, Site

FROM_PAGE = {"Origin": PAGE}


def reader(site: Site, key: str = "widget", **headers: str) -> str:
    """A new reader's token."""
    response = site.call("POST", "/readers", key, headers={**FROM_PAGE, **headers})
    assert response.status_code == 201, response.text
    token: str = response.json()["reader_token"]
    return token


def ask(site: Site, token: str, key: str = "widget", **body: object) -> httpx.Response:
    """A reader's question."""
    headers = {**FROM_PAGE, "X-Reader-Token": token}
    return site.call("POST", "/chat/run", key, headers=headers, json={"message": QUESTION["alpha"], **body})


def test_a_readers_threads_are_its_own(site: Site) -> None:
    """Two browsers with one key do not see each other's, nor does another key's reader; a renewed token does."""
    first_reader, second_reader = reader(site), reader(site)
    session = ask(site, first_reader).json()["session_id"]
    renewed = reader(site, **{"X-Reader-Token": first_reader})

    def thread_status(token: str, key: str = "widget") -> int:
        headers = {**FROM_PAGE, "X-Reader-Token": token}
        return site.call("GET", f"/threads/{session}", key, headers=headers).status_code

    assert (thread_status(first_reader), thread_status(renewed), thread_status(second_reader)) == (200, 200, 404)
    assert thread_status(first_reader, "gadget") == 401
    assert thread_status(reader(site, "gadget"), "gadget") == 404
    assert site.call("GET", f"/threads/{session}", "alpha").status_code == 404


@pytest.mark.parametrize("forge", ["nothing", "made up", "another key's", "another reader's name", "more time"])
def test_without_a_good_token_there_is_no_conversation(site: Site, forge: str) -> None:
    """401 with advice for chat and threads; reading the book needs no token."""
    good = reader(site)
    name, expires, signature = good.split(".")
    headers = {
        "nothing": {},
        "made up": {"X-Reader-Token": "x"},
        "another key's": {"X-Reader-Token": reader(site, "gadget")},
        "another reader's name": {"X-Reader-Token": f"{uuid.uuid4().hex}.{expires}.{signature}"},
        "more time": {"X-Reader-Token": f"{name}.{int(time.time()) + 10**8}.{signature}"},
    }[forge] | FROM_PAGE

    for method, path in (("GET", "/threads"), ("POST", "/chat/run"), ("POST", "/chat/stream")):
        response = site.call(
            method, path, "widget", headers=headers, **({"json": {"message": "hm?"}} if "chat" in path else {})
        )
        assert response.status_code == 401
        assert "POST /readers" in response.json()["detail"]
        assert response.headers["www-authenticate"] == "Bearer"
    assert site.call("POST", "/search", "widget", headers=headers, json={"text": "a node"}).status_code == 200


def test_a_publishable_key_works_on_its_pages_only(site: Site) -> None:
    """Another origin, none, a look-alike or `null` is a 403, on every route; so is a page that may use the API."""
    for headers in (
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "https://site.example.evil.example"},
        {"Origin": "http://site.example"},
        {"Origin": "https://site.example:8443"},
        {"Origin": "null"},
        {"Origin": "https://listed.example"},
        {"Referer": f"{PAGE}/x"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        for method, path in (("GET", "/books"), ("POST", "/readers")):
            assert site.call(method, path, "widget", headers=headers).status_code == 403, headers
    assert site.call("GET", "/books", "widget", headers=FROM_PAGE).status_code == 200


def test_a_page_of_the_same_server_is_known_without_an_origin(site: Site) -> None:
    """A browser leaves it out when it reads from the page's own server; the name that was asked is the page's then."""
    headers = {"Sec-Fetch-Site": "same-origin", "Host": "127.0.0.1"}

    assert site.call("GET", "/books", "widget", headers=headers).status_code == 200
    assert site.call("GET", "/books", "gadget", headers=headers).status_code == 403
    for elsewhere in ({}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-site"}):
        assert site.call("GET", "/books", "widget", headers={**headers, "Sec-Fetch-Site": "", **elsewhere}).is_error


def test_readers_are_of_publishable_keys(site: Site) -> None:
    """A secret key's conversations are its own already."""
    response = site.call("POST", "/readers", "alpha")

    assert response.status_code == 403
    assert "publishable" in response.json()["detail"]


def test_a_publishable_key_reads_one_book_and_changes_nothing(site: Site) -> None:
    """Another book is unknown, deleting and ingesting are not for it."""
    assert [book["book_id"] for book in site.call("GET", "/books", "widget", headers=FROM_PAGE).json()] == ["alpha"]
    assert site.call("GET", "/books/beta/outline", "widget", headers=FROM_PAGE).status_code == 404
    assert site.call("DELETE", "/books/alpha", "widget", headers=FROM_PAGE).status_code == 403
    assert ask(site, reader(site), book_id="beta").status_code == 404


def preflight(site: Site, origin: str) -> httpx.Response:
    """What a browser asks before it sends a key."""
    return site.call("OPTIONS", "/chat/run", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})


@pytest.mark.parametrize("origin", [PAGE, "https://listed.example"])
def test_listed_pages_may_read_the_answers(site: Site, origin: str) -> None:
    """By a publishable key or by the setting; refusals too, or the page could not say what is wrong."""
    allowed = preflight(site, origin)
    refused = site.call("GET", "/books", headers={"Origin": origin})

    assert allowed.status_code == 204
    assert "X-Reader-Token" in allowed.headers["access-control-allow-headers"]
    assert "DELETE" in allowed.headers["access-control-allow-methods"]
    assert refused.status_code == 401
    for response in (allowed, refused):
        assert response.headers["access-control-allow-origin"] == origin
        assert "Retry-After" in response.headers["access-control-expose-headers"]
        assert "origin" in response.headers["vary"].lower()
        assert "access-control-allow-credentials" not in response.headers


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://site.example.evil.example"])
def test_other_pages_hear_nothing_and_change_nothing(site: Site, origin: str) -> None:
    """No CORS header for them, even with a good key; a request that could change something is not carried out."""
    for response in (
        preflight(site, origin),
        site.call("GET", "/books", "alpha", headers={"Origin": origin}),
        site.call("GET", "/health/live", headers={"Origin": origin}),
    ):
        assert not [name for name in response.headers if name.startswith("access-control")]
    changing = site.call("DELETE", "/books/nothing", "alpha", headers={"Origin": origin})
    assert changing.status_code == 403
    assert "LECTERN_ORIGINS" in changing.json()["detail"]


def test_the_servers_own_page_needs_no_listing(site: Site) -> None:
    """It sends its origin with what it posts."""
    response = site.call("POST", "/search", "alpha", json={"text": "a node"}, headers={"Origin": site.address})

    assert response.status_code == 200
