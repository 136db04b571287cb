"""Replies and streams with HTML, for callers that ask for it. Stored replies hold Markdown; HTML is made when they are
read, so that a better renderer improves old conversations too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lectern.domain.threads import Json
from lectern.rendering.answers import AnswerBlock, ClaimSpan, GrowingAnswer, answer_html
from lectern.rendering.passages import passage_html


def with_html(reply: Json) -> dict[str, Any]:
    """A reply as it is stored, with its answer and its quoted passages as HTML. What a damaged reply lacks stays
    away."""
    response, sources = reply.get("response"), reply.get("sources")
    if not isinstance(response, str) or not isinstance(sources, list):
        return dict(reply)
    sources = [{**source, "html": passage_html(source.get("chunk_text") or "")} for source in sources]
    claims = [_span(number, statement) for number, statement in enumerate(reply.get("statements") or ())]
    html = answer_html(response, sources=len(sources), claims=[claim for claim in claims if claim is not None])
    return {**reply, "html": html, "sources": sources}


def _span(number: int, statement: Mapping[str, Any]) -> ClaimSpan | None:
    start, end = statement.get("start"), statement.get("end")  # replies of older versions have none
    return ClaimSpan(number, start, end) if isinstance(start, int) and isinstance(end, int) else None


class StreamedBlocks:
    """The `block` events of a stream, made from its other events."""

    def __init__(self) -> None:
        self._answer = GrowingAnswer()
        self._text = ""

    def of(self, name: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The bodies of the `block` events that follow from this event."""
        if name == "delta":
            self._text += body["text"]
            return _bodies(self._answer.add(body["text"]))
        return _bodies(self._answer.judge(*self._claims(name, body)))

    def catch_up(self, events: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """The bodies of the `block` events that show what these events, the first of the stream, have added up to."""
        claims: list[ClaimSpan] = []
        for name, body in events:
            self._text += body["text"] if name == "delta" else ""
            claims += self._claims(name, body)
        return _bodies(self._answer.catch_up(self._text, claims))

    def _claims(self, name: str, body: Mapping[str, Any]) -> list[ClaimSpan]:
        if name == "verdict" and self._text[body["start"] : body["end"]] == body["text"]:
            return [ClaimSpan(body["claim"], body["start"], body["end"])]
        return []


def _bodies(blocks: Sequence[AnswerBlock]) -> list[dict[str, Any]]:
    return [{"index": block.index, "html": block.html, "count": block.count} for block in blocks]
