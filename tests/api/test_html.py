"""Answers as HTML over HTTP, on a real server with the sample book."""

from __future__ import annotations

import uuid

import httpx
import pytest

from lectern.api.rendered import StreamedBlocks, with_html
from tests.sse import events

QUESTION = "What does a best effort publisher mean for a reliable subscriber?"


def test_html_comes_where_it_is_asked_for(server: str) -> None:
    """A reply has its answer and its passages as HTML if the request says so, and not otherwise; a key for repeated
    requests sees one request in both."""
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    plain = httpx.post(f"{server}/chat/run", json={"message": QUESTION}, headers=headers, timeout=120).json()
    body = {"message": QUESTION, "html": True}
    rendered = httpx.post(f"{server}/chat/run", json=body, headers=headers, timeout=120).json()

    assert plain.get("html") is None
    assert rendered["response"] == plain["response"]
    assert 'class="cite" data-source="1"' in rendered["html"]
    assert 'data-claim="0"' in rendered["html"]
    assert all(source["html"].startswith("<") for source in rendered["sources"])


def test_a_stream_sends_blocks_that_add_up(server: str) -> None:
    """The blocks of a stream make up the answer; a resumed stream sends them again, and the reply has the HTML."""
    body = {"message": QUESTION, "html": True}
    with httpx.stream("POST", f"{server}/chat/stream", json=body, timeout=120) as response:
        first = list(events(response.iter_lines()))
    run_id = next(event.body["run_id"] for event in first if event.name == "status")
    again = httpx.get(f"{server}/chat/stream/{run_id}", params={"html": True}, timeout=120)
    resumed = list(events(again.text.split("\n")))

    reply = next(event.body for event in first if event.name == "reply")
    for stream in (first, resumed):
        blocks: dict[int, str] = {}
        for event in stream:
            if event.name == "block":
                blocks[event.body["index"]] = event.body["html"]
        assert "".join(blocks[index] for index in sorted(blocks)).split() == reply["html"].split()
        assert stream[-1].body["html"] == reply["html"]


def test_a_resumed_stream_with_html_loses_and_repeats_nothing(server: str) -> None:
    """From every event on, blocks too, the other events that are left are sent once, the ids never go backwards, and
    the blocks make up the answer."""
    with httpx.stream(
        "POST", f"{server}/chat/stream", json={"message": QUESTION, "html": True}, timeout=120
    ) as response:
        first = list(events(response.iter_lines()))
    run_id = next(event.body["run_id"] for event in first if event.name == "status")

    for place, event in enumerate(first[:-1]):
        again = httpx.get(
            f"{server}/chat/stream/{run_id}", params={"html": True}, headers={"Last-Event-ID": event.id}, timeout=120
        )
        resumed = list(events(again.text.split("\n")))
        left = [event for event in first[place + 1 :] if event.name != "block"]
        assert [event for event in resumed if event.name != "block"] == left
        numbers = [int(event.id.partition("-")[2]) for event in resumed]
        assert numbers == sorted(numbers)
        blocks = {event.body["index"]: event.body["html"] for event in resumed if event.name == "block"}
        assert "".join(blocks[index] for index in sorted(blocks)).split() == first[-1].body["html"].split()


def test_what_is_shown_already_is_rendered_once_for_a_client_that_comes_back() -> None:
    """Each block comes once, with the marks of all claims so far."""
    stream, text = StreamedBlocks(), "The arm is heavy.\n\nIt is slow."
    claims = [(0, 0, 17), (1, 19, 30)]
    verdicts = [
        ("verdict", {"claim": claim, "start": start, "end": end, "text": text[start:end]})
        for claim, start, end in claims
    ]

    blocks = stream.catch_up([("status", {}), *(("delta", {"text": sign}) for sign in text), *verdicts])

    assert [(block["index"], block["count"]) for block in blocks] == [(0, 2), (1, 2)]
    assert [f'data-claim="{number}"' in block["html"] for number, block in enumerate(blocks)] == [True, True]
    assert stream.of(*verdicts[0]) == []


@pytest.mark.parametrize("reply", [{}, {"response": "Yes."}, {"sources": None, "response": "Yes."}])
def test_a_damaged_reply_is_given_as_it_is(reply: dict[str, object]) -> None:
    """An export with one damaged turn still has the others."""
    assert with_html(reply) == reply
    assert with_html({"response": "Yes [1].", "sources": [{}], "statements": None})["sources"] == [{"html": ""}]


def test_an_export_has_html_if_asked(server: str) -> None:
    """An old conversation is rendered when it is read."""
    session = str(uuid.uuid4())
    httpx.post(f"{server}/chat/run", json={"message": QUESTION, "session_id": session}, timeout=120)

    export = httpx.get(f"{server}/threads/{session}/export", params={"html": True}, timeout=120).json()

    assert 'class="cite"' in export["turns"][0]["reply"]["html"]
