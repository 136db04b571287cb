"""What tools return to the model, what is kept of it, and what of it a later turn gets again."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lectern.answering.earlier_calls import within_budget
from lectern.app.lectern import Lectern
from lectern.domain.errors import BadInput
from lectern.domain.replies import Exchange, ToolUse
from lectern.domain.threads import Message
from tests.answering.scripted import chats, open_scripted, tool_outputs
from tests.fakeai import FakeAI, ScriptedReply, Step, calling, fake_ai, saying

NODE = "A node is a process that computes. [1]"
GRIPPER = "How strong is the gripper?"


@pytest.fixture
def ai() -> Iterator[FakeAI]:
    """The scripted endpoint."""
    with fake_ai() as server:
        server.script(then=Step(say=saying(NODE)))
        yield server


@pytest.fixture
async def lectern(tmp_path: Path, ai: FakeAI) -> AsyncIterator[Lectern]:
    """Lectern on a small book, answered by the scripted model."""
    async with open_scripted(tmp_path, ai) as opened:
        yield opened


async def outputs_of_call(lectern: Lectern, ai: FakeAI, **arguments: Any) -> dict[str, Any]:
    """What the tool answers to a model that calls it once with these arguments."""
    ai.script(Step(say=calling("retrieve_documentation", **arguments)), then=Step(say=saying(NODE)))
    await lectern.ask("What is a node?", thread=str(uuid.uuid4()))
    return tool_outputs(chats(ai)[1])[1]


async def test_results_have_the_similarity_to_the_query_of_their_call(lectern: Lectern, ai: FakeAI) -> None:
    """The model asked about the gripper, so the gripper's passage is near, however far it is from the question."""
    found = await lectern.search(GRIPPER, limit=1)
    output = await outputs_of_call(lectern, ai, query=GRIPPER, top_k=1)

    [result] = output["results"]
    assert result["chunk_text"] == found.hits[0].chunk.text
    assert result["similarity_score"] == pytest.approx(found.hits[0].relevance, abs=1e-3)
    assert result["similarity"] == pytest.approx(found.hits[0].similarity, abs=1e-3)


async def test_the_threshold_of_a_call_holds(lectern: Lectern, ai: FakeAI) -> None:
    """A threshold between the best two passages leaves one of them."""
    best, second = [hit.relevance for hit in (await lectern.search("What is a node?", limit=2)).hits]
    between = round((best + second) / 2, 4)
    without = await outputs_of_call(lectern, ai, query="What is a node?", top_k=2)
    ai.received.clear()
    output = await outputs_of_call(lectern, ai, query="What is a node?", top_k=2, similarity_threshold=between)

    assert without["total_results"] == 2
    assert [result["similarity_score"] for result in output["results"]] == [pytest.approx(best, abs=1e-3)]


async def test_a_search_without_results_says_so_in_words(lectern: Lectern, ai: FakeAI) -> None:
    """The model reads the design's sentence, and may not take an empty list for a fault."""
    output = await outputs_of_call(lectern, ai, query=GRIPPER, similarity_threshold=1.0)

    assert output["results"] == []
    assert output["message"] == "No relevant content found in the book."


async def test_a_turn_keeps_instructions_and_tool_calls(lectern: Lectern, ai: FakeAI) -> None:
    """All messages can be read again, in order, in the form that language models take."""
    thread_id = str(uuid.uuid4())
    ai.script(
        Step(say=calling("retrieve_documentation", query=GRIPPER)),
        Step(say=lambda _: ScriptedReply(calls=(("retrieve_documentation", '{"top_k": 3}'),))),
        then=Step(say=saying(NODE)),
    )
    await lectern.ask("What is a node?", thread=thread_id)
    conversation = await lectern.threads.conversation(thread_id)

    roles = [message.role for message in conversation.messages]
    assert roles == ["system", "user", *["assistant", "tool"] * 3, "assistant"]
    assert (conversation.id, conversation.model) == (thread_id, "scripted-model")
    assert conversation.messages[0].content == chats(ai)[0]["messages"][0]["content"]
    assert json.loads(conversation.messages[7].content)["error"]
    sent = conversation.to_openai_messages()
    assert [message["content"] for message in sent if message["role"] == "tool"] == [
        message["content"] for message in chats(ai)[2]["messages"] if message["role"] == "tool"
    ]
    assert sent[4]["tool_calls"][0]["function"] == {
        "name": "retrieve_documentation",
        "arguments": json.dumps({"query": GRIPPER}),
    }
    assert sent[4]["tool_calls"][0]["id"] == sent[5]["tool_call_id"]
    assert [message.role for message in (await lectern.threads.read(thread_id)).messages] == ["user", "assistant"]


async def test_earlier_results_go_to_the_model_again(lectern: Lectern, ai: FakeAI) -> None:
    """A later turn gets the calls of the turn before it with their results, but without numbers to cite."""
    thread_id = str(uuid.uuid4())
    await lectern.ask("What is a node?", thread=thread_id)
    ai.received.clear()
    await lectern.ask("What is a service?", thread=thread_id)

    messages = chats(ai)[0]["messages"]
    roles = [message["role"] for message in messages]
    assert roles == "system user assistant tool assistant user assistant tool".split()
    earlier, current = tool_outputs(chats(ai)[0])
    assert earlier["query"] == "What is a node?"
    assert "A node is a process that computes." in earlier["results"][0]["chunk_text"]
    assert all("rank" not in result for result in earlier["results"])
    assert all("rank" in result for result in current["results"])


async def test_no_earlier_results_without_a_budget(tmp_path: Path, ai: FakeAI) -> None:
    """An operator with a small model turns them off."""
    async with open_scripted(tmp_path, ai, history_tokens=0) as lectern:
        thread_id = str(uuid.uuid4())
        await lectern.ask("What is a node?", thread=thread_id)
        ai.received.clear()
        await lectern.ask("What is a service?", thread=thread_id)

    assert [output["query"] for output in tool_outputs(chats(ai)[0])] == ["What is a service?"]


def test_the_budget_goes_to_the_last_turns_first() -> None:
    """The newest results come whole; of older ones as many as still fit; a damaged one is left out."""
    results = [{"chunk_text": "word " * 100, "rank": number} for number in (1, 2)]
    use = ToolUse(
        call_id="c",
        name="retrieve_documentation",
        arguments="{}",
        output=json.dumps({"results": results, "total_results": 2, "query": "q"}),
        timestamp="",
    )
    exchange = Exchange(question="q", answer="a", tool_uses=(use, replace(use, output="{broken")))

    first, second, third = within_budget([exchange] * 3, 400)

    sizes = [[json.loads(kept.output)["total_results"] for kept in one.tool_uses] for one in (first, second, third)]
    assert sizes == [[], [1], [2]]


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "robot"},
        {"role": "user", "content": "  "},
        {"role": "user", "tool_calls": ()},
        {"role": "assistant", "tool_call_id": "call_1"},
        {"role": "system", "name": "retrieve_documentation"},
    ],
)
def test_messages_follow_the_rules_of_their_role(fields: dict[str, Any]) -> None:
    """A message that no model would take cannot be made."""
    with pytest.raises(BadInput):
        Message(**{"content": "text", "timestamp": "", **fields})
