"""The fifth design document, *RAG Agent Construction & Retrieval Integration*: its prompt, its rules, its limits."""

from __future__ import annotations

from typing import Any

import pytest

from lectern import views
from tests.documents.conftest import QUESTION, Asked
from tests.documents.running import names_after, send

PROMPT = '''
def build_prompt(context: RetrievalContext) -> str:
    chunks_text = "\\n\\n".join([
        f"[{i+1}] {chunk.page_title}\\n{chunk.text}"
        for i, chunk in enumerate(context.chunks)
    ])

    return f"""
You are an expert assistant for the Physical AI & Robotics book.

RULES:
1. ONLY answer using the CONTEXT provided below
2. If the answer is not in the CONTEXT, say "I couldn't find that information in the book"
3. ALWAYS cite your sources using [Source: Page Title] format
4. Be concise and accurate

CONTEXT:
{chunks_text}

USER QUESTION: {context.query}
"""
'''


def test_its_code_makes_the_same_prompt(asked: Asked) -> None:
    """To the letter, from a search in the book that it names."""
    context = views.retrieval_context(asked.found)

    assert views.build_prompt(context, book_title="Physical AI & Robotics") == names_after(PROMPT)["build_prompt"](
        context
    )
    assert context.total_found == len(context.chunks) == 5
    assert context.has_relevant_results == (context.chunks[0].score >= 0.3)


def test_its_response_has_pages(asked: Asked) -> None:
    """The times add up, the marks are page titles, and each citation is a page that was used."""
    response = views.agent_response(asked.reply)

    assert response.query == QUESTION
    assert response.total_time_ms == pytest.approx(response.retrieval_time_ms + response.generation_time_ms, abs=0.01)
    assert (response.confidence, response.error) == ("high", None)
    for citation in response.citations:
        assert f"[Source: {citation.page_title}]" in response.answer
        assert citation.page_url in {source.page_url for source in asked.reply.sources}
        assert citation.module_name == "ros2"


@pytest.mark.parametrize("module", ["intro", "ros2", "simulation", "isaac", "vla"])
def test_its_module_names_are_known(server: str, module: str) -> None:
    """On the sample book, in a search and in a question."""
    found = send(server, "/search", {"text": "What is this module about?", "module_filter": module}).json()

    assert found["results"]
    assert {result["module"] for result in found["results"]} == {found["module_filter"]}


@pytest.mark.parametrize("wrong", [{"message": "   "}, {"message": QUESTION, "module_filter": "xyz"}])
def test_a_bad_query_is_an_error(server: str, wrong: dict[str, Any]) -> None:
    """Before anything is searched."""
    assert send(server, "/chat/run", wrong).status_code == 422


@pytest.mark.parametrize(
    ("body", "state", "reason"),
    [
        ({"message": QUESTION}, "completed", None),
        ({"message": QUESTION, "similarity_threshold": 1}, "no_results", "no_results"),
        ({"message": "Which wine goes well with roast duck?"}, "low_confidence", "weak_evidence"),
    ],
)
def test_its_states_end_a_turn(server: str, body: dict[str, Any], state: str, reason: str | None) -> None:
    """Answered, refused without a passage, refused with some; a bad query has no reply."""
    reply = send(server, "/chat/run", body).json()

    assert (reply["state"], reply["reason"]) == (state, reason)
    assert reply["should_answer"] == bool(reply["sources"]) == (reason is None)
