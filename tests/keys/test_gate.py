"""Who gets in, against a real server (RELIABILITY K1, K2)."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import httpx
import pytest

from lectern.api.app import MAX_BODY_BYTES, MAX_LOCAL_BODY_BYTES
from lectern.app.commands import LOCAL_TOKEN_HEADER
from lectern.domain.keys import digest_of
from tests.keys.conftest import QUESTION, Site, keys_command
from tests.served import lectern

OPEN = (
    "/health/live",
    "/health/ready",
    "/",
    "/index.html",
    "/page/main.js",
    "/style/ground.css",
    "/docs",
    "/docs.js",
    "/openapi.json",
)
BODY = (
    '{"type":"about:blank","title":"Unauthorized","status":401,"detail":"a good key is needed, as `Authorization: '
    'Bearer KEY` or `X-API-Key: KEY`; the operator makes one with: lectern keys create","field":null,"code":"bad_key"}'
)


def refused(site: Site, headers: dict[str, str | bytes] | list[tuple[str, str]], path: str = "/books") -> None:
    """The one answer to whatever is wrong with a key."""
    response = site.web.get(f"{site.address}{path}", headers=headers)

    assert (response.status_code, response.text) == (401, BODY)
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.headers["content-type"] == "application/problem+json"


def test_every_bad_key_gets_the_same_answer(site: Site) -> None:
    """K1: none, unknown, expired, revoked, cut, another's secret, wrong scheme, two that differ, no ASCII."""
    good, other_key = site.keys["alpha"], site.keys["beta"]
    kind, key_id, secret = good.split("_")
    for bad in (
        "x", good[:-1], good + "x", good.upper(), f"{kind}_{key_id}_{'a' * 32}", f"{kind}_{'a' * 12}_{secret}",
        f"lp_{key_id}_{secret}", f"{kind}_{other_key.split('_')[1]}_{secret}", site.keys["expired"],
        site.keys["revoked"], f"{good},{good}", f"{good} {good}", "lk_", "' OR 1=1 --", "a" * 7000,
    ):  # fmt: skip
        refused(site, {"X-API-Key": bad})
        refused(site, {"Authorization": f"Bearer {bad}"})
    for scheme in ("Basic", "Token", "", "Bearer Bearer", "Bear er"):
        refused(site, {"Authorization": f"{scheme} {good}".strip()})
    refused(site, {})
    refused(site, {"Authorization": "Bearer"})
    refused(site, {"X-API-Key": ""})
    refused(site, {"X-API-Key": f"{good}é".encode("latin-1")})
    refused(site, {"X-API-Key": "lk_é".encode()})
    refused(site, {"X-API-Key": good, "Authorization": f"Bearer {other_key}"})
    refused(site, {"X-API-Key": good, "Authorization": "Basic dTpw"})
    refused(site, [("X-API-Key", good), ("X-API-Key", other_key)])
    refused(site, {"Cookie": f"key={good}"})
    for name in ("key", "api_key", "access_token", "token", "X-API-Key"):
        refused(site, {}, f"/books?{name}={good}")


def test_a_good_key_gets_in_by_either_header(site: Site) -> None:
    """Or by both, if they say the same; the scheme's case does not matter."""
    key = site.keys["alpha"]
    for headers in (
        {"Authorization": f"Bearer {key}"},
        {"Authorization": f"bearer {key}"},
        {"X-API-Key": key},
        {"X-API-Key": key, "Authorization": f"Bearer {key}"},
    ):
        assert site.web.get(f"{site.address}/books", headers=headers).status_code == 200


def test_every_route_needs_a_key_unless_it_is_listed(site: Site) -> None:
    """Also those that do not exist, whatever the method and the body; health, page and description need none."""
    described = site.web.get(f"{site.address}/openapi.json").json()
    for path, methods in described["paths"].items():
        for method in methods:
            response = site.web.request(method, f"{site.address}{path}", content=b"{not json")
            assert response.status_code == (200 if path.startswith("/health/") else 401), f"{method} {path}"
    for path in ("/metrics", "/nothing", "/health", "/health/", "/health/../books", "/openapi.json/", "/docs/x", "//"):
        assert site.web.get(f"{site.address}{path}").status_code == 401, path
    for path in OPEN:
        assert site.web.get(f"{site.address}{path}").status_code == 200, path


def test_every_guarded_operation_says_so(site: Site) -> None:
    """The description names both ways to send a key for every operation but health."""
    for path, methods in site.web.get(f"{site.address}/openapi.json").json()["paths"].items():
        for operation in methods.values():
            schemes = [] if path.startswith("/health/") else [{"bearer": []}, {"apiKey": []}]
            assert operation.get("security", []) == schemes, operation["operationId"]


def test_every_header_of_ours_is_described(site: Site) -> None:
    """A client that is written from the description alone knows what each response carries, and a page may read it."""
    described = site.web.get(f"{site.address}/openapi.json").json()
    described_names = {name.lower() for name in described["components"]["headers"]}
    key = {"X-API-Key": site.keys["alpha"]}
    run = site.web.post(f"{site.address}/chat/run", headers=key, json={"message": QUESTION["alpha"]})
    thread = f"/threads/{run.json()['session_id']}"
    responses = [
        (run, "/chat/run", "post"),
        (site.web.post(f"{site.address}/chat/run", json={}), "/chat/run", "post"),
        (site.web.get(f"{site.address}/books", headers=key), "/books", "get"),
        (site.web.get(f"{site.address}{thread}", headers=key), "/threads/{thread_id}", "get"),
        (site.web.patch(f"{site.address}{thread}", headers=key, json={"title": "T"}), "/threads/{thread_id}", "patch"),
        (site.web.get(f"{site.address}/health/live"), "/health/live", "get"),
    ]
    assert [response.status_code for response, _, _ in responses] == [200, 401, 200, 200, 200, 200]
    for answer, path, method in responses:
        response = described["paths"][path][method]["responses"][str(answer.status_code)]
        header_names = {
            name.lower() for name in response["headers"] if not name.startswith("RateLimit")
        }  # no limits here
        assert described_names & {name.lower() for name in answer.headers} == header_names, (path, method)


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("GET", "/books", "read"),
        ("POST", "/search", "read"),
        ("GET", "/books/alpha/outline", "read"),
        ("GET", "/books/alpha/chunks", "read"),
        ("GET", "/lessons/x?book_id=alpha", "read"),
        ("GET", "/chunks/x/context?book_id=alpha", "read"),
        ("GET", "/threads", "chat"),
        ("POST", "/chat/run", "chat"),
        ("DELETE", "/books/nothing", "admin"),
        ("GET", "/metrics", "admin"),
        ("POST", "/books/nothing/calibrations", "admin"),
        ("POST", "/doctor", "admin"),
        ("GET", "/ingestions", "ingest"),
        ("POST", "/books/alpha/ingestions", "ingest"),
    ],
)
def test_a_right_that_is_missing_is_a_403(site: Site, method: str, path: str, right: str) -> None:
    """With the right's name; the one key that has it gets further."""
    body = {"json": {"text": "a node", "message": "a node"}} if method == "POST" else {}  # complete for none of them
    for name in ("read", "chat", "ingest", "admin"):
        response = site.call(method, path, f"only-{name}", **body)
        assert (response.status_code == 403) == (name != right), name
        if name != right:
            assert (
                response.json()["detail"] == f"this key lacks the right {right!r}; ask the operator for one that has it"
            )


def test_the_doctor_needs_a_key_of_all_books(site: Site) -> None:
    """It looks at every book, so a key with a list of them does not get there; a calibration is of one book."""
    limited = site.call("POST", "/doctor", "alpha")

    assert (limited.status_code, limited.json()["code"]) == (403, "forbidden")
    assert "list of books" in limited.json()["detail"]
    assert site.call("POST", "/doctor", "only-admin").json() == []
    short = {"questions": [{"text": QUESTION["alpha"], "answerable": True}]}
    response = site.call("POST", "/books/alpha/calibrations", "alpha", json=short)
    assert (response.status_code, response.json()["code"]) == (
        422,
        "bad_input",
    )  # of too few questions: it got that far


def test_local_commands_need_their_own_token(site: Site) -> None:
    """The token of the home is accepted, a key is not, and without either the route does not exist."""
    assert site.call("POST", "/local/books", "only-admin", json={}).status_code == 404
    assert site.web.post(f"{site.address}/local/books", json={}).status_code == 404
    assert "alpha" in lectern("books", home=site.home).stdout


def test_local_commands_have_a_limit_of_their_own(site: Site, tmp_path: Path) -> None:
    """A command may bring more than a request of a reader; up to its own limit, and nothing without the token."""
    lines = [
        json.dumps({"_id": str(number), "text": "What is it? " + "x" * 400, "answerable": True})
        for number in range(500)
    ]
    file = tmp_path / "queries.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    refused = lectern("calibrate", "--book", "nowhere", "--questions", str(file), home=site.home, check=False)
    assert "nowhere" in refused.stderr  # it was read

    token = json.loads((site.home / "server.json").read_text(encoding="utf-8"))["token"]
    large = b" " * (MAX_LOCAL_BODY_BYTES + 1)
    headers = {LOCAL_TOKEN_HEADER: token}
    assert site.web.post(f"{site.address}/local/books", content=large, headers=headers).status_code == 413
    allowed = b" " * (MAX_BODY_BYTES + 1)
    assert site.web.post(f"{site.address}/local/books", content=allowed).status_code == 404


def test_a_stolen_database_holds_no_key(site: Site) -> None:
    """K2: no file of the database has an issued text or its secret; the digests are there, so the search can find."""
    site.call("GET", "/books", "alpha")
    files = {file: file.read_bytes() for file in site.home.glob("lectern.db*")}

    for text in site.keys.values():
        for needle in (text, text.rpartition("_")[2]):
            assert [file.name for file, stored_bytes in files.items() if needle.encode() in stored_bytes] == []
    digest = digest_of(site.keys["alpha"]).encode()
    assert [file for file, stored_bytes in files.items() if digest in stored_bytes]


def test_a_keys_use_is_listed(site: Site) -> None:
    """One that was used says when, one that was refused does not."""
    site.call("GET", "/books", "alpha")
    site.call("GET", "/books", "revoked")
    with sqlite3.connect(f"file:{site.home / 'lectern.db'}?mode=ro", uri=True) as database:
        last_uses = dict(database.execute("SELECT name, last_used_at FROM api_keys"))

    assert last_uses["alpha"]
    assert last_uses["revoked"] is None


def test_threads_survive_rotation_and_not_revocation(site: Site) -> None:
    """The new text reads the old text's conversations; a revoked key reads nothing, at once on this server."""
    new_key = json.loads(keys_command(site.home, "create", "--name", "turning", "--book", "alpha", "--json").stdout)

    def threads(text: str) -> httpx.Response:
        return site.web.get(f"{site.address}/threads", headers={"X-API-Key": text})

    response = site.web.post(
        f"{site.address}/chat/run", json={"message": QUESTION["alpha"]}, headers={"X-API-Key": new_key["key"]}
    )
    before = threads(new_key["key"]).json()["threads"]
    turned = json.loads(keys_command(site.home, "rotate", new_key["key_id"], "--json").stdout)

    assert response.status_code == 200
    assert len(before) == 1
    assert threads(new_key["key"]).status_code == 401
    assert threads(turned["key"]).json()["threads"] == before
    keys_command(site.home, "revoke", new_key["key_id"])
    assert threads(turned["key"]).status_code == 401


def test_the_authors_page_is_served_without_a_key(site: Site) -> None:
    """The page is no secret; without its slash it leads there by a relative address, whatever proxy is between."""
    page = site.call("GET", "/desk/")
    redirect = site.call("GET", "/desk?book=alpha", follow_redirects=False)

    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (redirect.status_code, redirect.headers["location"]) == (307, "desk/?book=alpha")
    assert "unsafe-inline" not in page.headers["content-security-policy"]


def test_a_lessons_address_tells_nothing_to_those_without_a_key(site: Site) -> None:
    """A browser is sent to the page, which asks for a key, whether there is such a lesson or not; programs get a 401.
    With a key, a lesson of a book that may not be read does not exist."""
    lesson = {name: site.call("GET", f"/books/{name}/outline", name).json()["modules"][0] for name in ("alpha", "beta")}
    urls = {name: module["chapters"][0]["lessons"][0]["url"] for name, module in lesson.items()}
    browser = {"Accept": "text/html,*/*;q=0.8"}

    for path in (urls["alpha"], "/no/such/lesson"):
        sent = site.call("GET", path, headers=browser)
        depth = path.count("/") - 1
        assert (sent.status_code, sent.headers["location"].rpartition("?")[0]) == (302, "../" * depth or "./")
        assert sent.headers["location"].endswith(f"?at={path.replace('/', '%2F')}")
        refused(site, {}, path)
    assert site.call("GET", "/books", headers=browser).status_code == 401
    assert site.call("GET", urls["alpha"], headers={**browser, "X-API-Key": "x"}).status_code == 401
    for name, url in urls.items():  # the same path: a key opens the lesson of its own book
        assert f"book={name}&lesson=" in site.call("GET", url, name).headers["location"]
    assert site.call("GET", urls["alpha"], "only-chat").status_code == 404
