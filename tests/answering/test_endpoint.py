"""What a run of a language model does with an endpoint: no fault is taken for an answer, and no parameter is insisted
on. Both APIs, whole and streamed."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from lectern.app.factories import endpoint_answerer
from lectern.app.settings import Settings
from lectern.domain.errors import ProviderError, ProviderRefused, RateLimited
from lectern.domain.replies import ToolUse
from lectern.models.agent import AgentAnswerer
from lectern.models.endpoint import _Pieces
from lectern.ports.answering import Assignment, Cut, Usage
from tests.answering.scripted import KEY
from tests.fakeai import FakeAI, ScriptedReply, Step, calling, fake_ai, saying

ANSWER = "A node is a process that computes. [1] Nodes talk over topics. [1]"
Api = Literal["chat", "responses"]
both_apis = pytest.mark.parametrize("api", ["chat", "responses"])
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    """The scripted endpoint."""
    with fake_ai() as server:
        yield server


@dataclass
class Shelf:
    """A desk that writes down what is asked of it."""

    queries: list[str] = field(default_factory=list)

    async def retrieve(self, query: str, top_k: int | None, similarity_threshold: float | None) -> str:
        """Nothing more than there was."""
        self.queries.append(query)
        return json.dumps({"results": []})

    async def read_lesson(self, parent_doc_id: str) -> str:
        """Nothing."""
        return json.dumps({"results": []})

    async def outline(self) -> str:
        """Nothing."""
        return json.dumps({"modules": []})

    def record(self, use: ToolUse) -> None:
        """Keep nothing."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an answerer gave."""

    pieces: list[str]
    cuts: list[Cut]
    tokens: int
    kinds: list[str]
    queries: list[str]

    @property
    def text(self) -> str:
        """The whole answer."""
        return "".join(self.pieces)


@asynccontextmanager
async def answering(ai: FakeAI, api: Api = "chat", **settings: Any) -> AsyncIterator[AgentAnswerer]:
    """An answerer on the scripted endpoint."""
    values = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1", "OPENAI_MODEL": "scripted-model"}
    async with AsyncExitStack() as stack:
        yield endpoint_answerer(Settings(**(values | {"openai_api": api} | settings)), stack)


async def written(answerer: AgentAnswerer, *, stream: bool) -> Written:
    """The answer to a question for which one passage was found."""
    shelf = Shelf()
    found = json.dumps({"results": [{"rank": 1, "chunk_text": "A node is a process that computes."}]})
    task = Assignment(question="What is a node?", retrieved=found, history=(), desk=shelf, stream=stream)
    values = [value async for value in answerer.write(task)]
    return Written(
        pieces=[value for value in values if isinstance(value, str)],
        cuts=[value for value in values if isinstance(value, Cut)],
        tokens=sum(value.tokens for value in values if isinstance(value, Usage)),
        kinds=[type(value).__name__ for value in values],
        queries=shelf.queries,
    )


def bodies(ai: FakeAI) -> list[dict[str, Any]]:
    """What the endpoint was sent."""
    return [one.body for one in ai.received]


@both_apis
@both_ways
async def test_an_answer_comes_whole_with_its_tokens(ai: FakeAI, api: Api, *, stream: bool) -> None:
    """The text as the model wrote it, in pieces if it is streamed; last what it cost."""
    ai.script(then=Step(say=saying(ANSWER)))
    async with answering(ai, api) as answerer:
        answer = await written(answerer, stream=stream)

    assert answer.text == ANSWER
    assert (len(answer.pieces) > 3) == stream
    assert (answer.tokens, answer.cuts, answer.kinds[-1]) == (15, [], "Usage")
    assert [one.path for one in ai.received] == [{"chat": "/v1/chat/completions", "responses": "/v1/responses"}[api]]


@both_apis
@both_ways
async def test_an_endpoint_that_cannot_stream_is_answered_with_all_the_same(
    ai: FakeAI, api: Api, *, stream: bool
) -> None:
    """One JSON answer where a stream was asked for is the answer: its calls of tools, its text and its tokens."""
    asking = Step(say=calling("retrieve_documentation", query="topics"), whole=True)
    ai.script(asking, then=Step(say=saying(ANSWER), whole=True))
    async with answering(ai, api) as answerer:
        answer = await written(answerer, stream=stream)

    assert (answer.text, answer.queries) == (ANSWER, ["topics"])
    assert (answer.tokens, answer.cuts, answer.kinds[-1]) == (30, [], "Usage")


@both_apis
async def test_a_whole_answer_in_place_of_a_stream_says_that_it_was_cut(ai: FakeAI, api: Api) -> None:
    """As any other answer does."""
    ai.script(then=Step(say=lambda _: ScriptedReply(text="A node is", finish="length"), whole=True))
    async with answering(ai, api) as answerer:
        answer = await written(answerer, stream=True)

    assert (answer.text, [cut.reason for cut in answer.cuts]) == ("A node is", ["length"])


NO_ANSWER = "web page or an empty body"
FAULTS = {  # each with what its error says
    "nothing": (Step(), "empty answer"),
    "white space": (Step(say=saying(" \n\t ")), "empty answer"),
    "error object": (
        Step(say=lambda _: ScriptedReply(text="A node", error={"message": "no", "code": "server_error"})),
        r"failed \(500, server_error\)",
    ),
    "error ending": (Step(say=lambda _: ScriptedReply(text="A node", finish="error")), "failed"),
    "too long, no word": (Step(say=lambda _: ScriptedReply(finish="length")), "used up its tokens"),
    "filtered, no word": (Step(say=lambda _: ScriptedReply(finish="content_filter")), "content filter"),
    "call cut": (
        Step(say=lambda _: ScriptedReply(calls=(("retrieve_documentation", '{"que'),), finish="length")),
        "cut off a call",
    ),
    "web page": (Step(body=b"<html><body>Welcome</body></html>", content_type="text/html"), NO_ANSWER),
    "web page as JSON": (Step(body=b"<html><body>Welcome</body></html>"), f"{NO_ANSWER}|cannot be read"),
    "empty body": (Step(body=b"", content_type="text/event-stream"), NO_ANSWER),
    "no choices": (
        Step(body=b'{"id": "1", "choices": [], "output": []}'),
        f"without a choice|empty answer|{NO_ANSWER}",
    ),
    "choices null": (Step(body=b'{"id": "1", "choices": null, "output": null}'), f"without a choice|{NO_ANSWER}"),
    "error body": (Step(body=b'{"error": {"message": "overloaded", "code": 503}}'), r"failed \(503\)"),
    "null": (Step(body=b"null"), NO_ANSWER),
    "cut": (Step(ending="cut", say=saying(ANSWER)), "broke off|cannot be read"),
    "reset": (Step(ending="reset"), "broke off"),
    "redirect": (Step(status=307, headers={"location": "/elsewhere"}), r"rejected the request \(307"),
}


@both_apis
@both_ways
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_never_an_answer(ai: FakeAI, fault: str, api: Api, *, stream: bool) -> None:
    """One typed error that says what happened and what to do, and repeats no key; the next question is answered."""
    step, says = FAULTS[fault]
    ai.script(then=step)
    async with answering(ai, api) as answerer:
        with pytest.raises(ProviderError, match=says) as caught:
            await written(answerer, stream=stream)
        ai.script(then=Step(say=saying(ANSWER)))
        after = await written(answerer, stream=stream)

    assert "; " in str(caught.value)
    assert KEY not in str(caught.value)
    assert after.text == ANSWER


@both_apis
async def test_a_stream_that_just_stops_is_cut_off(ai: FakeAI, api: Api) -> None:
    """Also where the connection is closed as it should be: nothing said that the answer was over."""
    ai.script(then=Step(say=saying(ANSWER), signs="none"))
    async with answering(ai, api) as answerer:
        with pytest.raises(ProviderError, match="broke off"):
            await written(answerer, stream=True)


@pytest.mark.parametrize("signs", ["finish", "done"])
async def test_either_sign_of_the_end_is_enough(ai: FakeAI, signs: Literal["finish", "done"]) -> None:
    """Some endpoints send no finish reason, others no [DONE]."""
    ai.script(then=Step(say=saying(ANSWER), signs=signs))
    async with answering(ai) as answerer:
        answer = await written(answerer, stream=True)

    assert answer.text == ANSWER


@both_apis
async def test_doubled_pieces_are_a_fault(ai: FakeAI, api: Api) -> None:
    """A short answer in which every piece comes twice is told at its end, a long one while it comes."""
    ai.script(Step(say=saying("A node is."), doubled=True), then=Step(say=saying(ANSWER), doubled=True))
    shown: list[str] = []
    async with answering(ai, api) as answerer:
        with pytest.raises(ProviderError, match="twice"):
            await written(answerer, stream=True)
        task = Assignment(question="What is a node?", retrieved="{}", history=(), desk=Shelf(), stream=True)
        with pytest.raises(ProviderError, match="twice"):  # noqa: PT012  # what was shown before counts
            async for piece in answerer.write(task):
                shown.append(str(piece))  # noqa: PERF401  # the pieces before the error

    assert len(shown) < 8


@both_apis
async def test_a_reader_who_leaves_ends_the_call(ai: FakeAI, api: Api) -> None:
    """The endpoint is not left writing for nobody."""
    ai.script(then=Step(say=saying(ANSWER), drip=0.2))
    async with answering(ai, api) as answerer:
        task = Assignment(question="What is a node?", retrieved="{}", history=(), desk=Shelf(), stream=True)
        async with aclosing(answerer.write(task)) as pieces:  # type: ignore[type-var]  # a generator
            await anext(pieces)
        async with asyncio.timeout(15):  # the whole answer would take 20 s
            while ai.at_once:  # noqa: ASYNC110  # of a server in another thread
                await asyncio.sleep(0.01)


async def test_a_stream_under_the_wrong_content_type_is_read(ai: FakeAI) -> None:
    """Some servers call it JSON."""
    chunk = {"id": "1", "choices": [{"index": 0, "delta": {"content": ANSWER}, "finish_reason": "stop"}]}
    ai.script(then=Step(body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()))
    async with answering(ai) as answerer:
        assert (await written(answerer, stream=True)).text == ANSWER


@both_apis
async def test_an_answer_may_repeat_itself(ai: FakeAI, api: Api) -> None:
    """One piece over and over, or some of them twice, is no fault."""
    for answer in ("A node" + " a node" * 9, "ha ha! ha ha! A node is a process that computes. [1]"):
        ai.script(then=Step(say=saying(answer)))
        async with answering(ai, api) as answerer:
            assert (await written(answerer, stream=True)).text == answer


def test_one_long_piece_that_comes_twice_is_a_fault() -> None:
    """A short answer may come in one piece."""
    watched = _Pieces()
    watched.add("A node is one participant [1].")
    watched.add("A node is one participant [1].")

    with pytest.raises(ProviderError, match="twice"):
        watched.check()


async def test_an_error_object_between_chunks_is_a_fault(ai: FakeAI) -> None:
    """Although [DONE] follows it."""
    chunk = {"id": "1", "choices": [{"index": 0, "delta": {"content": "A node"}, "finish_reason": None}]}
    error = {"object": "error", "message": "boom", "type": "InternalServerError", "code": 500}
    body = "".join(f"data: {json.dumps(part)}\n\n" for part in (chunk, error)) + "data: [DONE]\n\n"
    ai.script(then=Step(body=body.encode(), content_type="text/event-stream"))
    async with answering(ai) as answerer:
        with pytest.raises(ProviderError, match=r"failed \(500\)"):
            await written(answerer, stream=True)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "tools param requires --jinja flag"),
        (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
)
async def test_servers_that_fail_on_tools_are_asked_without_them(ai: FakeAI, status: int, message: str) -> None:
    """Whatever status they fail with; the SDK repeats a call that failed with 500."""
    refused = Step(status=status, body=json.dumps({"error": {"message": message, "code": status}}).encode())
    ai.script(*[refused] * (3 if status == 500 else 1), then=Step(say=saying(ANSWER)))
    async with answering(ai) as answerer:
        answer = await written(answerer, stream=False)

    assert answer.text == ANSWER
    assert [message["role"] for message in bodies(ai)[-1]["messages"]].count("tool") == 0


@pytest.mark.parametrize("pieces", ["1100110011", "1100.", "--==--==  ||", "22..22::"])
def test_digits_and_signs_may_come_in_pairs(pieces: str) -> None:
    """By chance; only words that all come twice are a fault."""
    watched = _Pieces()
    for piece in pieces:
        watched.add(piece)
    watched.check()

    assert watched.text == pieces


@both_apis
@both_ways
@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_was_cut_says_so(
    ai: FakeAI, reason: Literal["length", "content_filter"], api: Api, *, stream: bool
) -> None:
    """What there is of it comes, then why there is no more, then its cost."""
    ai.script(then=Step(say=lambda _: ScriptedReply(text=ANSWER, finish=reason)))
    async with answering(ai, api) as answerer:
        answer = await written(answerer, stream=stream)

    assert answer.text == ANSWER
    assert answer.cuts == [Cut(reason=reason)]
    assert answer.kinds[-2:] == ["Cut", "Usage"]
    assert answer.tokens == 15


@both_apis
@both_ways
async def test_the_error_in_an_answer_keeps_its_kind(ai: FakeAI, api: Api, *, stream: bool) -> None:
    """A limit told inside a body or a stream is a limit."""
    ai.script(then=Step(say=lambda _: ScriptedReply(error={"message": "slow down", "code": "rate_limit_exceeded"})))
    async with answering(ai, api) as answerer:
        with pytest.raises(RateLimited):
            await written(answerer, stream=stream)


@both_apis
@both_ways
async def test_words_before_a_call_of_a_tool_are_kept_apart(ai: FakeAI, api: Api, *, stream: bool) -> None:
    """A whole answer and a streamed one have the same text."""
    further = ScriptedReply(text="Let me look.", calls=(("retrieve_documentation", '{"query": "node"}'),))
    ai.script(Step(say=lambda _: further), then=Step(say=saying(ANSWER)))
    async with answering(ai, api) as answerer:
        answer = await written(answerer, stream=stream)

    assert answer.text == f"Let me look.\n\n{ANSWER}"
    assert (answer.queries, answer.tokens) == (["node"], 30)


@both_apis
@both_ways
async def test_an_unknown_tool_costs_nothing(ai: FakeAI, api: Api, *, stream: bool) -> None:
    """The model hears that there is no such tool, and goes on."""
    ai.script(Step(say=calling("delete_everything")), then=Step(say=saying(ANSWER)))
    async with answering(ai, api) as answerer:
        answer = await written(answerer, stream=stream)

    assert answer.text == ANSWER
    assert "not found" in json.dumps(bodies(ai)[-1])


@both_apis
@both_ways
@pytest.mark.parametrize("arguments", ["{not json", "[]", '"text"', "", '{"top_k": 3}'])
async def test_arguments_that_cannot_be_read_cost_nothing(
    ai: FakeAI, arguments: str, api: Api, *, stream: bool
) -> None:
    """The model hears what is wrong; the call goes back to the endpoint as JSON, because some refuse anything else."""
    ai.script(
        Step(say=lambda _: ScriptedReply(calls=(("retrieve_documentation", arguments),))), then=Step(say=saying(ANSWER))
    )
    async with answering(ai, api) as answerer:
        answer = await written(answerer, stream=stream)

    assert answer.text == ANSWER
    last = bodies(ai)[-1]
    items = last["input"] if api == "responses" else last["messages"]
    calls = [one["arguments"] for one in items if one.get("type") == "function_call"]
    calls += [call["function"]["arguments"] for one in items for call in one.get("tool_calls") or []]
    assert len(calls) == 2
    assert all(isinstance(json.loads(call), dict) for call in calls)
    assert "cannot be used" in json.dumps(items)


PARAMETERS = {
    "chat": {"model", "messages", "tools", "temperature"},
    "responses": {"model", "input", "instructions", "tools", "temperature", "store"},
}


@both_apis
@both_ways
async def test_only_what_is_set_or_needed_is_sent(ai: FakeAI, api: Api, *, stream: bool) -> None:
    """No parameter besides; a stream of Chat Completions has to be asked for its tokens."""
    ai.script(then=Step(say=saying(ANSWER)))
    async with answering(ai, api) as answerer:
        await written(answerer, stream=stream)

    streaming = {"stream"} | ({"stream_options"} if api == "chat" else set()) if stream else set()
    [body] = bodies(ai)
    assert set(body) == PARAMETERS[api] | streaming


async def test_no_temperature_is_sent_if_none_is_set(ai: FakeAI, monkeypatch: pytest.MonkeyPatch) -> None:
    """For models that are known to refuse it."""
    monkeypatch.setenv("LECTERN_TEMPERATURE", "none")
    ai.script(then=Step(say=saying(ANSWER)))
    async with answering(ai) as answerer:
        await written(answerer, stream=False)

    assert "temperature" not in bodies(ai)[0]


@both_apis
async def test_the_limit_of_tokens_is_sent_where_it_is_set(ai: FakeAI, api: Api) -> None:
    """Under the name that the API has for it."""
    ai.script(then=Step(say=saying(ANSWER)))
    async with answering(ai, api, max_tokens=77) as answerer:
        await written(answerer, stream=False)

    assert bodies(ai)[0][{"chat": "max_tokens", "responses": "max_output_tokens"}[api]] == 77


@both_apis
@both_ways
async def test_a_refused_parameter_is_left_out(
    ai: FakeAI, caplog: pytest.LogCaptureFixture, api: Api, *, stream: bool
) -> None:
    """The call is repeated without it, once for each, and one line says so; the next call begins with all of them."""
    limit = {"chat": "max_tokens", "responses": "max_output_tokens"}[api]
    refuses = ("temperature", limit, "stream_options", "store", "max_completion_tokens")
    ai.script(then=Step(say=saying(ANSWER), refuses=refuses))
    async with answering(ai, api, max_tokens=77) as answerer:
        with caplog.at_level(logging.INFO, logger="lectern.models"):
            answer = await written(answerer, stream=stream)
        lines = list(caplog.messages)
        first = len(ai.received)
        await written(answerer, stream=stream)

    assert answer.text == ANSWER
    sent = bodies(ai)
    assert not set(refuses) & set(sent[first - 1])
    assert "temperature" in sent[0]
    assert set(sent[first]) == set(sent[0])
    assert sum("temperature" in line for line in lines) == 1


@both_ways
async def test_a_limit_of_tokens_is_sent_under_its_newer_name(ai: FakeAI, *, stream: bool) -> None:
    """Where the endpoint refuses `max_tokens` and names `max_completion_tokens`."""
    ai.script(then=Step(say=saying(ANSWER), refuses=("max_tokens",)))
    async with answering(ai, max_tokens=77) as answerer:
        await written(answerer, stream=stream)

    assert [one.get("max_tokens") for one in bodies(ai)] == [77, None]
    assert [one.get("max_completion_tokens") for one in bodies(ai)] == [None, 77]


REFUSALS = {
    "openai": (400, {"message": "Unsupported value: 'temperature' does not support 0.1 with this model."}),
    "a list": (422, [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]),
    "plain text": (400, "temperature: this parameter is deprecated for this model"),
}


@pytest.mark.parametrize("shape", REFUSALS)
async def test_a_refusal_is_understood_in_any_shape(ai: FakeAI, shape: str) -> None:
    """Endpoints word it as they like; the parameter's name is in it."""
    status, error = REFUSALS[shape]
    ai.script(Step(status=status, body=json.dumps({"error": error}).encode()), then=Step(say=saying(ANSWER)))
    async with answering(ai) as answerer:
        answer = await written(answerer, stream=False)

    assert answer.text == ANSWER
    assert ["temperature" in body for body in bodies(ai)] == [True, False]


@pytest.mark.parametrize(
    "message",
    [
        "this model does not support tools",
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "No endpoints found that support tool use",
        "function calling is not supported by this model",
    ],
)
@both_apis
@both_ways
async def test_a_model_without_tools_gets_the_passages_in_the_question(
    ai: FakeAI, message: str, api: Api, *, stream: bool
) -> None:
    """The call is repeated as a plain one; the next question is tried with tools again."""
    refused = Step(status=404, body=json.dumps({"error": {"message": message, "code": None}}).encode())
    ai.script(refused, Step(say=saying(ANSWER)), refused, then=Step(say=saying(ANSWER)))
    async with answering(ai, api) as answerer:
        texts = [(await written(answerer, stream=stream)).text for _ in range(2)]

    assert texts == [ANSWER, ANSWER]
    assert ["tools" in body for body in bodies(ai)] == [True, False, True, False]
    assert "A node is a process" in json.dumps(bodies(ai)[1].get("messages") or bodies(ai)[1]["input"])


@both_apis
async def test_a_refusal_of_something_else_is_an_error_at_once(ai: FakeAI, api: Api) -> None:
    """No parameter is left out on a guess."""
    ai.script(then=Step(status=400, body=b'{"error": {"message": "your prompt is not nice", "code": null}}'))
    async with answering(ai, api) as answerer:
        with pytest.raises(ProviderRefused):
            await written(answerer, stream=False)

    assert len(ai.received) == 1


async def test_tokens_that_are_not_told_are_none(ai: FakeAI) -> None:
    """An endpoint that does not count is no fault."""
    ai.script(then=Step(say=saying(ANSWER), counted=False))
    async with answering(ai) as answerer:
        answer = await written(answerer, stream=True)

    assert (answer.text, answer.tokens) == (ANSWER, 0)


async def test_a_short_line_by_the_model_is_no_more_insisted_on(ai: FakeAI) -> None:
    """A rewriting that the provider cut, or that failed, is no rewriting; a refused parameter is left out there too."""
    from lectern.domain.replies import Exchange

    history = [Exchange(question="What is a node?", answer="A process. [1]")]
    cut = Step(say=lambda _: ScriptedReply(text="What is a topic and", finish="length"))
    ai.script(cut, Step(body=b"<html>"), then=Step(say=saying("What is a topic?"), refuses=("temperature",)))
    async with answering(ai) as answerer:
        rewritten = [(await answerer.standalone("And a topic?", history))[0] for _ in range(3)]

    assert rewritten == [None, None, "What is a topic?"]


@pytest.mark.parametrize(
    ("api", "path"),
    [("auto", "/v1/chat/completions"), ("responses", "/v1/responses"), ("chat", "/v1/chat/completions")],
)
async def test_the_api_can_be_chosen(ai: FakeAI, api: Any, path: str) -> None:
    """Another host than OpenAI's is called through Chat Completions, unless the operator says otherwise."""
    ai.script(then=Step(say=saying(ANSWER)))
    async with answering(ai, api) as answerer:
        await written(answerer, stream=False)

    assert [one.path for one in ai.received] == [path]


ODD_BODIES = [
    b'{"choices": [{"message": "A node"}]}', b'{"choices": "A node"}', b'{"choices": [5]}', b'{"output": "A node"}',
    b'{"output": [{"type": "message", "content": "A node"}]}', b'{"choices": [{"message": {"content": 5}}]}',
    b'{"output": [5]}',
]  # fmt: skip


@both_apis
@both_ways
@pytest.mark.parametrize("body", ODD_BODIES)
async def test_an_answer_of_another_shape_is_a_fault(ai: FakeAI, body: bytes, api: Api, *, stream: bool) -> None:
    """JSON that only resembles an answer is told as a provider's fault."""
    ai.script(then=Step(body=body))
    async with answering(ai, api) as answerer:
        with pytest.raises(ProviderError):
            await written(answerer, stream=stream)
