"""Every route with every foreign id (RELIABILITY T5): what belongs to somebody else answers exactly as what does not
exist. The routes come from the API's own description, so a new one is tried without being named here."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from lectern.domain.errors import BadInput
from lectern.retrieval.scope import resolve_book
from tests.keys.conftest import PAGE, QUESTION, Site

BODIES: dict[str, dict[str, Any]] = {
    "search": {"text": "coordinate system"},
    "chatRun": {"message": "Where does it stand?"},
    "chatStream": {"message": "Where does it stand?"},
    "editThread": {"title": "mine"},
    "rateTurn": {"turn": 1, "rating": "up"},
    "startIngestion": {"mode": "incremental"},
    "calibrateBook": {"questions": [{"text": "What is a frame?", "answerable": True}]},
    "examineIndex": {"mend": False},
    "retrieveDocumentation": {"query": "coordinate system"},
}
FIELDS = {"session_id": "thread_id"}  # by another name in a body
VOLATILE = re.compile(
    r'"(timestamp|query_time_ms|[a-z_]*_ms|created_at|updated_at)": ?("[^"]*"|[0-9.e-]+)|: ping - [^\n]*'
)


@dataclass(frozen=True)
class Slot:
    """A place in a request where an id stands."""

    operation: str
    method: str
    path: str
    where: str  # path, query or body
    name: str

    def __str__(self) -> str:
        return f"{self.operation} {self.where} {self.name}"


def slots(described: dict[str, Any]) -> Iterator[Slot]:
    """Every place of every operation."""
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            make = (operation["operationId"], method.upper(), path)
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" or parameter["name"].endswith("_id"):
                    yield Slot(*make, parameter["in"], parameter["name"])
            for name in fields(described, operation):
                if name.endswith("_id"):
                    yield Slot(*make, "body", name)


def fields(described: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """The fields of an operation's body."""
    content = operation.get("requestBody", {}).get("content", {})
    reference = content.get("application/json", {}).get("schema", {}).get("$ref", "")
    return list(described["components"]["schemas"].get(reference.rpartition("/")[2], {}).get("properties", {}))


def own_ids(site: Site, key: str) -> dict[str, str]:
    """One real id of each kind that a key has."""
    response = site.call("POST", "/chat/stream", key, json={"message": QUESTION[key]})
    status = json.loads(response.text.partition("data: ")[2].partition("\n")[0])
    chunk = site.call("GET", f"/books/{key}/chunks", key).json()["chunks"][0]
    ids = {
        "thread_id": status["session_id"],
        "run_id": status["run_id"],
        "book_id": key,
        "chunk_id": chunk["id"],
        "parent_doc_id": chunk["payload"]["parent_doc_id"],
        "path": f"{key}.png",
    }
    jobs = site.call("GET", "/ingestions", key)
    if jobs.status_code == 200 and jobs.json()["jobs"]:
        ids["job_id"] = str(jobs.json()["jobs"][0]["job_id"])
    return ids


def unknown_ids(foreign: dict[str, str]) -> dict[str, str]:
    """Ids of the same shapes that nobody has."""
    ids = {name: str(uuid.uuid4()) for name in foreign}
    ids["book_id"], ids["path"] = "omega", "omega.png"
    if foreign.get("job_id", "").isdecimal():
        ids["job_id"] = "987654"
    return ids


def answer(site: Site, slot: Slot, path_values: dict[str, str], sent_id: str) -> tuple[int, str]:
    """What the first key hears about an id, with everything changed that must differ."""
    path_ids = {**path_values, slot.name: sent_id} if slot.where == "path" else path_values
    path = re.sub(r"\{(\w+)\}", lambda match: path_ids[match[1]], slot.path)
    more: dict[str, Any] = {"params": {slot.name: sent_id}} if slot.where == "query" else {}
    if slot.method in ("POST", "PATCH", "PUT") and slot.operation in BODIES:
        more["json"] = {**BODIES[slot.operation], **({slot.name: sent_id} if slot.where == "body" else {})}
    response = site.call(slot.method, path, "alpha", **more)
    text = VOLATILE.sub("", response.text.replace(sent_id, "ID"))
    text = re.sub(r"^id: [0-9a-f]{8}-", "id: ATTEMPT-", text, flags=re.MULTILINE)
    return response.status_code, re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID", text)


@pytest.fixture(scope="module")
def described(site: Site) -> dict[str, Any]:
    """The API as it describes itself."""
    description: dict[str, Any] = site.web.get(f"{site.address}/openapi.json").json()
    return description


@pytest.fixture(scope="module")
def ids(site: Site) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """The first key's own ids, the second's, and nobody's."""
    alpha_ids, foreign = own_ids(site, "alpha"), own_ids(site, "beta")
    return alpha_ids, foreign, unknown_ids(foreign)


def test_every_route_takes_a_foreign_id_for_an_unknown_one(
    site: Site, described: dict[str, Any], ids: tuple[dict[str, str], dict[str, str], dict[str, str]]
) -> None:
    """T5: status and body are the same, whichever the route, the place and the kind of id."""
    alpha_ids, foreign, unknown = ids
    all_slots = sorted(slots(described), key=lambda slot: slot.where == "body")  # chat begins a thread of an unknown id
    different = {}
    for slot in all_slots:
        kind = FIELDS.get(slot.name, slot.name)
        assert kind in foreign, f"{slot}: say in own_ids where a real {kind} comes from"
        heard = answer(site, slot, alpha_ids, foreign[kind]), answer(site, slot, alpha_ids, unknown[kind])
        if heard[0] != heard[1] or (slot.where == "path" and heard[0][0] not in (403, 404)):
            different[str(slot)] = heard

    assert different == {}
    assert {FIELDS.get(slot.name, slot.name) for slot in all_slots} >= {"thread_id", "run_id", "book_id", "chunk_id"}
    assert len(all_slots) >= 15


def test_every_operation_with_a_body_is_tried_with_one(described: dict[str, Any]) -> None:
    """Else the matrix would compare two complaints about the body."""
    expected = {
        operation["operationId"]
        for methods in described["paths"].values()
        for operation in methods.values()
        if operation.get("requestBody", {}).get("required")
    }

    assert expected <= set(BODIES)


def test_the_foreign_ids_are_real(
    site: Site, described: dict[str, Any], ids: tuple[dict[str, str], dict[str, str], dict[str, str]]
) -> None:
    """To their owner they answer, and still do after the first key tried to change and delete them."""
    _, foreign, _ = ids
    for slot in slots(described):
        if slot.method == "GET" and slot.where == "path":
            path = re.sub(r"\{(\w+)\}", lambda match: foreign[match[1]], slot.path)
            assert site.call("GET", path, "beta").status_code == 200, str(slot)
    thread = site.call("GET", f"/threads/{foreign['thread_id']}", "beta").json()
    assert thread["title"] == QUESTION["beta"]
    assert thread["turn_count"] == 1


def test_two_keys_of_one_book_have_their_own_threads(
    site: Site, ids: tuple[dict[str, str], dict[str, str], dict[str, str]]
) -> None:
    """Books are shared by keys, conversations are not."""
    alpha_ids = ids[0]

    assert site.call("GET", f"/threads/{alpha_ids['thread_id']}", "second").status_code == 404
    assert site.call("GET", "/threads", "second").json()["threads"] == []
    assert site.call("GET", f"/books/{alpha_ids['book_id']}/outline", "second").status_code == 200


async def test_a_default_book_is_not_named_to_everybody() -> None:
    """Who may not read the operator's default hears of their own books only; who may need not name it."""

    class Collections:
        async def books(self) -> list[SimpleNamespace]:
            return [SimpleNamespace(manifest=SimpleNamespace(book_id=name)) for name in ("a", "b", "default")]

    collections: Any = Collections()
    with pytest.raises(BadInput) as refused:
        await resolve_book(None, collections, "default", frozenset({"a", "b"}))

    assert "default" not in str(refused.value)
    assert (await resolve_book(None, collections, "default", frozenset({"a", "default"}))).manifest.book_id == "default"
    assert (await resolve_book(None, collections, "default", None)).manifest.book_id == "default"


def test_lists_and_advice_name_only_what_may_be_read(site: Site) -> None:
    """Neither a list nor an error has the name of a book outside the key's; a key of one book need not name it."""
    assert [book["book_id"] for book in site.call("GET", "/books", "alpha").json()] == ["alpha"]
    assert [book["book_id"] for book in site.call("GET", "/books", "only-read").json()] == ["alpha", "beta"]
    results = site.call("POST", "/search", "alpha", json={"text": "coordinate system"})
    assert results.json()["book_id"] == "alpha"
    for path in (
        "/books/omega/outline",
        "/books/beta/chunks",
        "/lessons/x?book_id=beta",
        "/chunks/x/context?book_id=beta",
    ):
        response = site.call("GET", path, "alpha")
        assert response.status_code == 404
        assert response.json()["detail"].endswith("indexed: alpha")
    unsaid = site.call("POST", "/search", "only-read", json={"text": "coordinate system"})
    assert unsaid.status_code == 422
    assert "alpha, beta" in unsaid.json()["detail"]


def test_an_image_needs_a_key_of_its_book(site: Site) -> None:
    """The bytes go to a key with the book and the right to read, and to nobody else."""
    on_page = site.call("GET", "/books/alpha/files/alpha.png", "widget", headers={"Origin": PAGE})

    assert (on_page.status_code, on_page.content) == (200, b"alpha")
    assert site.call("GET", "/books/alpha/files/alpha.png", "alpha").status_code == 200
    assert site.call("GET", "/books/alpha/files/alpha.png", "beta").status_code == 404
    assert site.call("GET", "/books/alpha/files/alpha.png", "only-ingest").status_code == 403
    assert site.call("GET", "/books/alpha/files/alpha.png").status_code == 401


@pytest.mark.parametrize("body", [{"dry_run": True}, {"replace": True}, {"mode": "recreate", "replace": True}])
def test_a_key_of_one_book_reads_no_other_folder(site: Site, body: dict[str, Any]) -> None:
    """Another book's folder, one that holds it, and one that does not exist are refused alike, by any name, so a key
    can neither index the text of another book as its own nor list its files. Its own folder is read."""
    (site.books / "unclaimed").mkdir(exist_ok=True)
    sources = ("beta", "./beta/", ".", str(site.books), str(site.books / "beta"), "unclaimed", "none")
    answers = {
        (answer.status_code, answer.json()["detail"].replace(repr(source), "SOURCE"))
        for source in sources
        for key, book in (("alpha", "alpha"), ("only-ingest", "alpha"), ("new-book", "new"))
        for answer in [site.call("POST", f"/books/{book}/ingestions", key, json={"source": source, **body})]
    }

    assert [status for status, _ in answers] == [422]
    own = site.call("POST", "/books/alpha/ingestions", "alpha", json={"source": "alpha", "dry_run": True})
    assert own.status_code == 200, own.text
