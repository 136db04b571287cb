"""Replies and streams with HTML, for callers that ask for it. Stored replies hold Markdown; HTML is made when they are
read, so that a better renderer improves old conversations too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lectern.domain.threads import Json
from lectern.rendering.answers import AnswerBlock, ClaimSpan, GrowingAnswer, answer_html, passage_html


def with_html(reply: Json) -> dict[str, Any]:
    """A reply as it is stored, with its answer and its quoted passages as HTML."""
    sources = [{**source, "html": passage_html(source["chunk_text"])} for source in reply["sources"]]
    claims = [_span(number, statement) for number, statement in enumerate(reply["statements"])]
    html = answer_html(reply["response"], sources=len(sources), claims=[claim for claim in claims if claim is not None])
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
        if name == "verdict" and self._text[body["start"] : body["end"]] == body["text"]:
            return _bodies(self._answer.judge(ClaimSpan(body["claim"], body["start"], body["end"])))
        return _bodies(self._answer.rest())


def _bodies(blocks: Sequence[AnswerBlock]) -> list[dict[str, Any]]:
    return [{"index": block.index, "html": block.html, "count": block.count} for block in blocks]
