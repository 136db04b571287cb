"""A language model as judge: one structured call about the claims that the local judge leaves unconfirmed. What it
says counts only as far as it can be checked, and whatever goes wrong with it leaves the local verdicts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lectern.domain.errors import ProviderError
from lectern.domain.replies import Answer, Judged, Reply
from lectern.models.model_judge import JUDGE_TOKENS, JUDGE_TOKENS_PER_CLAIM, _opinions
from tests.answering.scripted import chats, drafting, is_judging, open_scripted
from tests.fakeai import FakeAI, ScriptedReply, Step, fake_ai, saying

NODE = "A node is a process that computes."
TOPICS = "Nodes talk to each other over topics, and each topic has a message type."
# The local judge reads English alone, so that it leaves this open.
GERMAN = "Ein Knoten ist ein Programm, das etwas berechnet."
DRAFT = f"{NODE} [1] {GERMAN} [1] {TOPICS} [1] {NODE} [1]"
QUOTE = "A node is a process that computes"


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    """The scripted endpoint."""
    with fake_ai() as server:
        yield server


async def judged_reply(tmp_path: Path, ai: FakeAI, **options: Any) -> Reply:
    """The reply to a question."""
    async with open_scripted(tmp_path, ai, **options) as lectern:
        return await lectern.ask("What is a node?")


def verdict_on(reply: Reply, text: str = GERMAN) -> str:
    """The verdict on the claim with this text."""
    assert isinstance(reply, Answer)
    [verdict] = [statement.verdict for statement in reply.statements if text in statement.text]
    return verdict


async def test_open_claims_are_judged_in_one_call(tmp_path: Path, ai: FakeAI) -> None:
    """The call has the claims and their passages as JSON and no tools, its tokens are counted, and what it supports
    carries the words of the passage."""
    ai.script(then=Step(say=drafting(DRAFT, {"verdict": "supported", "passage": 1, "quote": QUOTE})))
    reply = await judged_reply(tmp_path, ai)

    assert isinstance(reply, Answer)
    assert reply.text == DRAFT
    assert [statement.verdict for statement in reply.statements] == ["supported"] * 4
    assert reply.statements[1].evidence == f"{QUOTE}."
    assert reply.statements[1].chunk_id == reply.citations[0].hit.chunk.id
    writing, judging = chats(ai)
    assert (is_judging(writing), is_judging(judging)) == (False, True)
    assert not judging.get("tools")
    body = json.loads(judging["messages"][-1]["content"])
    assert [claim["text"] for claim in body["claims"]] == [GERMAN]
    assert QUOTE in body["passages"][0]["text"]
    assert reply.account.tokens_used == 30


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        ({"verdict": "supported", "passage": 1, "quote": "words that no passage of the book has"}, "unconfirmed"),
        ({"verdict": "supported", "passage": 1, "quote": ""}, "unconfirmed"),
        ({"verdict": "supported"}, "unconfirmed"),
        ({"verdict": "supported", "passage": 99, "quote": QUOTE}, "supported"),
        ({"verdict": "supported", "passage": "1", "quote": f"“{QUOTE.upper()}.”"}, "supported"),
        ({"verdict": "contradicted", "passage": 1, "quote": QUOTE}, "doubtful"),
        ({"verdict": "not_said"}, "doubtful"),
        ({"verdict": "perhaps", "passage": 1, "quote": QUOTE}, "unconfirmed"),
        ({"claim": 7, "verdict": "not_said"}, "unconfirmed"),
        ({"claim": True, "verdict": "not_said"}, "unconfirmed"),
        ({"claim": "1", "verdict": "not_said"}, "unconfirmed"),
    ],
)
async def test_an_opinion_counts_as_far_as_it_can_be_checked(
    tmp_path: Path, ai: FakeAI, row: dict[str, Any], verdict: str
) -> None:
    """A quotation must be in a passage; what the model denies is flagged, and the level is then not high."""
    ai.script(then=Step(say=drafting(DRAFT, row)))
    reply = await judged_reply(tmp_path, ai)

    assert verdict_on(reply) == verdict
    assert reply.text.endswith(DRAFT)
    if verdict == "doubtful":
        assert reply.account.metrics.confidence_level in ("medium", "low")
        assert reply.account.metrics.confidence < 0.85


async def test_local_rules_on_numbers_keep_their_veto(tmp_path: Path, ai: FakeAI) -> None:
    """The model quotes the passage rightly, and yet the number is nowhere."""
    claim = "Ein Knoten ist eines von 42 Programmen, die etwas berechnen."
    draft = f"{NODE} [1] {claim} [1]"
    ai.script(then=Step(say=drafting(draft, {"verdict": "supported", "passage": 1, "quote": QUOTE})))

    assert verdict_on(await judged_reply(tmp_path, ai), claim) != "supported"


ROW = {"claim": 1, "verdict": "supported", "passage": 1, "quote": QUOTE}
WRITTEN_ROWS = {
    "cut off": f'{{"claims": [{json.dumps(ROW)}, {{"claim": 2, "verdi',
    "followed by text": f"{json.dumps({'claims': [ROW]})} That {{is}} all.",
    "after a broken draft": f'{{"claims": [ … ]}} Again: {json.dumps({"claims": [ROW]})}',
    "fenced": f"Here:\n```json\n{json.dumps({'claims': [ROW]}, indent=2)}\n```",
    "a list": json.dumps([ROW]),
    "a row": json.dumps(ROW),
    "a line break in a string": json.dumps({"claims": [ROW]}).replace("process that", "process\nthat"),
    "a brace in a string": json.dumps({"claims": [{**ROW, "why": "{ } ]"}]}),
}


@pytest.mark.parametrize("form", WRITTEN_ROWS)
async def test_each_complete_row_counts(tmp_path: Path, ai: FakeAI, form: str) -> None:
    """Whatever is missing or written around it."""
    ai.script(Step(say=saying(DRAFT)), then=Step(say=saying(WRITTEN_ROWS[form])))

    assert verdict_on(await judged_reply(tmp_path, ai)) == "supported"


async def test_a_cut_judge_counts_as_far_as_it_came(tmp_path: Path, ai: FakeAI) -> None:
    """The endpoint says that the limit of tokens was reached, and the rows before it are complete."""
    cut = ScriptedReply(text=WRITTEN_ROWS["cut off"], finish="length")
    ai.script(Step(say=saying(DRAFT)), then=Step(say=lambda _: cut))

    assert verdict_on(await judged_reply(tmp_path, ai)) == "supported"


def test_reading_rows_takes_little_time() -> None:
    """Many open braces are not tried one by one."""
    start = time.process_time()

    assert _opinions('{"a":' * 100_000, 3) == []
    assert _opinions("{" * 100_000, 3) == []
    assert time.process_time() - start < 2


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_judge_is_asked_for_json_with_a_limit_of_its_own(tmp_path: Path, ai: FakeAI, api: Any) -> None:
    """The answer's own limit may be too small for many verdicts."""
    ai.script(Step(say=saying(DRAFT)), then=Step(say=saying(json.dumps({"claims": [ROW]}))))
    reply = await judged_reply(tmp_path, ai, max_tokens=90, openai_api=api)
    writing, judging = [received.body for received in ai.received if "embeddings" not in received.path]
    limit = {"chat": "max_tokens", "responses": "max_output_tokens"}[api]
    form = judging["response_format"] if api == "chat" else judging["text"]["format"]

    assert verdict_on(reply) == "supported"
    assert form["type"] == "json_schema"
    assert (writing[limit], judging[limit]) == (90, JUDGE_TOKENS + JUDGE_TOKENS_PER_CLAIM)
    assert not {"response_format", "text"} & set(writing)


@pytest.mark.parametrize(
    "message",
    [
        "This response_format type is unavailable now",
        "json_schema is not supported",
        "structured output is not available",
    ],
)
async def test_an_endpoint_without_structured_output_is_asked_without_it(
    tmp_path: Path, ai: FakeAI, message: str
) -> None:
    """As for any parameter that is refused."""
    refused = Step(status=400, body=json.dumps({"error": {"message": message}}).encode())
    ai.script(Step(say=saying(DRAFT)), refused, then=Step(say=saying(json.dumps({"claims": [ROW]}))))

    assert verdict_on(await judged_reply(tmp_path, ai)) == "supported"
    assert ["response_format" in body for body in chats(ai)] == [False, True, False]


FAULTS = {
    "prose": Step(say=saying("All of them look fine to me.")),
    "broken JSON": Step(say=saying('{"claims": [{"claim": 1, ')),
    "no list": Step(say=saying('{"claims": 3}')),
    "no rows": Step(say=saying('{"claims": [1, null, "x", []]}')),
    "another key": Step(say=saying('{"verdicts": []}')),
    "a list": Step(say=saying("[1, 2]")),
    "nothing": Step(say=saying("")),
    "server error": Step(status=500),
    "rejected": Step(status=401),
    "too many": Step(status=429, headers={"retry-after-ms": "1"}),
    "no JSON": Step(body=b"<html>502 Bad Gateway</html>"),
    "empty object": Step(body=b"{}"),
    "reset": Step(ending="reset"),
    "cut": Step(ending="cut", say=saying("{}")),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_judge_that_fails_leaves_the_local_verdicts(tmp_path: Path, ai: FakeAI, fault: str) -> None:
    """The answer is there, so that a reader gets it, whatever the second call does."""
    ai.script(Step(say=saying(DRAFT)), then=FAULTS[fault])
    reply = await judged_reply(tmp_path, ai)

    assert reply.text == DRAFT
    assert verdict_on(reply) == "unconfirmed"
    assert verdict_on(reply, TOPICS) == "supported"
    assert len(chats(ai)) >= 2


async def test_a_judge_that_hangs_leaves_the_local_verdicts(tmp_path: Path, ai: FakeAI) -> None:
    """The call has what is left of the turn's budget, and the turn ends within it."""
    ai.script(Step(say=saying(DRAFT)), then=Step(delay=30, say=saying("{}")))
    async with open_scripted(tmp_path, ai) as lectern:
        deps = lectern.app.ask_deps
        lectern.app.ask_deps = replace(deps, rules=replace(deps.rules, budget=4.0))
        try:
            reply = await lectern.ask("What is a node?")
        except ProviderError as error:
            pytest.fail(f"the turn failed with its judge: {error}")

    assert verdict_on(reply) == "unconfirmed"
    assert reply.account.timings.total_time_ms < 4_000


async def test_a_judge_that_hangs_holds_an_answer_for_its_own_limit(tmp_path: Path, ai: FakeAI) -> None:
    """The answer is finished: its reader does not wait for the rest of the turn's budget."""
    ai.script(Step(say=saying(DRAFT)), then=Step(delay=30, say=saying("{}")))
    async with open_scripted(tmp_path, ai, judge_seconds=0.5) as lectern:
        reply = await lectern.ask("What is a node?")

    assert verdict_on(reply) == "unconfirmed"
    assert reply.account.timings.total_time_ms < 10_000


async def test_the_local_judge_alone_makes_no_call(tmp_path: Path, ai: FakeAI) -> None:
    """`LECTERN_JUDGE=local` costs one call of the model, and leaves open what it leaves open."""
    ai.script(then=Step(say=drafting(DRAFT, {"verdict": "not_said"})))
    reply = await judged_reply(tmp_path, ai, judge="local")

    assert len(chats(ai)) == 1
    assert reply.account.tokens_used == 15
    assert verdict_on(reply) == "unconfirmed"


async def test_a_changed_verdict_is_a_second_event_of_the_same_claim(tmp_path: Path, ai: FakeAI) -> None:
    """A page shows the local verdict at once, and the model's when it comes."""
    ai.script(then=Step(say=drafting(DRAFT, {"verdict": "contradicted", "passage": 1, "quote": QUOTE})))
    async with open_scripted(tmp_path, ai) as lectern:
        events = [event async for event in lectern.stream("What is a node?")]

    judged_events = [event for event in events if isinstance(event, Judged)]
    assert [event.number for event in judged_events] == [0, 1, 2, 3, 1]
    assert [event.statement.verdict for event in judged_events if event.number == 1] == ["unconfirmed", "doubtful"]
    assert judged_events[-1].statement.evidence == f"{QUOTE}."
    assert judged_events[-1].statement.reason
