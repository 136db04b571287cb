"""Feedback and insights over HTTP: who may give and read them."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.keys.conftest import PAGE, QUESTION, Site


def asked(site: Site, key: str, question: str, headers: dict[str, str] | None = None) -> str:
    """Ask a question in a new conversation; its id."""
    thread = str(uuid.uuid4())
    body = {"message": question, "session_id": thread, "book_id": "alpha"}
    response = site.call("POST", "/chat/run", key, json=body, headers=headers or {})
    assert response.status_code == 200, response.text
    return thread


def insights(site: Site, key: str | None, book: str = "alpha", **query: object) -> Any:
    """The response to a request for insights."""
    return site.call("GET", f"/books/{book}/insights", key, params=query)


@pytest.mark.parametrize(
    ("key", "book", "status"),
    [
        (None, "alpha", 401),
        ("only-read", "alpha", 403),
        ("only-chat", "alpha", 403),
        ("only-ingest", "alpha", 403),
        ("widget", "alpha", 403),
        ("only-admin", "alpha", 200),
        ("alpha", "alpha", 200),
        ("beta", "alpha", 404),
        ("alpha", "nothing", 404),
    ],
)
def test_only_an_admin_of_the_book_reads_its_insights(site: Site, key: str | None, book: str, status: int) -> None:
    """Another right is not enough, and a book that the key may not read is unknown."""
    headers = {"Origin": PAGE} if key == "widget" else {}
    response = site.call("GET", f"/books/{book}/insights", key, headers=headers)

    assert response.status_code == status


def test_insights_are_of_all_owners_and_name_none(site: Site) -> None:
    """Questions of two keys and a reader are counted together; no key, thread or text of a question is in the reply."""
    before = insights(site, "only-admin").json()
    origin = {"Origin": PAGE}
    token = site.call("POST", "/readers", "widget", headers=origin).json()["reader_token"]
    threads = [
        asked(site, "alpha", QUESTION["alpha"]),
        asked(site, "only-chat", "Which wine goes well with roast duck?"),
        asked(site, "widget", QUESTION["alpha"], {**origin, "X-Reader-Token": token}),
    ]
    rating = {"turn": 1, "rating": "down", "reason": "off_topic", "comment": "no duck"}
    assert site.call("POST", f"/threads/{threads[1]}/feedback", "only-chat", json=rating).status_code == 204

    after = insights(site, "only-admin", days=1).json()
    text = json.dumps(after)

    assert [after[name] - before[name] for name in ("turns", "answered", "refused")] == [3, 2, 1]
    assert after["thumbs"]["down"] - before["thumbs"]["down"] == 1
    assert after["thumbs"]["reasons"]["off_topic"] >= 1
    assert (after["days"], len(after["per_day"])) == (1, 1)
    assert after["most_cited"][0]["title"] == "Nodes"
    assert after["thumbs"]["comments"] is None
    assert {group["questions"] for group in after["refused_questions"]} == {None}
    for private in ("duck", "key_", *threads):
        assert private not in text


def test_feedback_is_in_the_export_and_belongs_to_its_owner(site: Site) -> None:
    """A thumb is exported with the turn's number and can be taken back; to another key the thread is unknown."""
    thread = asked(site, "alpha", QUESTION["alpha"])
    path = f"/threads/{thread}/feedback"
    down = {"turn": 1, "rating": "down", "reason": "incomplete", "comment": "  More, please. "}

    assert site.call("POST", path, "second", json=down).status_code == 404
    assert site.call("POST", path, "only-read", json=down).status_code == 403
    assert site.call("POST", path, "alpha", json=down).status_code == 204
    [turn] = site.call("GET", f"/threads/{thread}/export", "alpha").json()["turns"]
    assert turn["number"] == 1
    assert turn["feedback"] == {"rating": "down", "reason": "incomplete", "comment": "More, please."}

    assert site.call("POST", path, "alpha", json={"turn": 1, "rating": None}).status_code == 204
    [turn] = site.call("GET", f"/threads/{thread}/export", "alpha").json()["turns"]
    assert turn["feedback"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"turn": 2, "rating": "up"}, "turn"),
        ({"turn": 0, "rating": "up"}, "turn"),
        ({"turn": 1, "rating": "meh"}, "rating"),
        ({"turn": 1, "rating": "up", "reason": "wrong"}, "reason"),
        ({"turn": 1, "rating": "down", "comment": "x" * 501}, "comment"),
        ({"turn": 1, "rating": "down", "comment": "a\x00"}, "comment"),
    ],
)
def test_feedback_that_is_out_of_range_names_the_field(site: Site, body: dict[str, Any], field: str) -> None:
    """A 422 says which part is wrong, and nothing is stored."""
    thread = asked(site, "alpha", QUESTION["alpha"])

    response = site.call("POST", f"/threads/{thread}/feedback", "alpha", json=body)

    assert (response.status_code, response.json()["field"]) == (422, field)
    [turn] = site.call("GET", f"/threads/{thread}/export", "alpha").json()["turns"]
    assert turn["feedback"] is None
