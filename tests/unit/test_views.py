"""Each design document's view of one reply, held against the document's own words."""

from __future__ import annotations

import json
from dataclasses import replace

from lectern.answering.citations import citation
from lectern.answering.views import (
    NOTHING_FOUND,
    agent_response,
    failed_response,
    format_for_agent,
    format_sources_footer,
    format_with_sources,
    retrieval_result,
)
from lectern.domain.evidence import ConfidenceMetrics, Findings
from lectern.domain.replies import Account, Answer, Refusal, Removals, Statement, Timings
from lectern.domain.scope import ChunkFilter
from lectern.schemas.chat import ChatRequest, ChatResponse
from lectern.schemas.tool_response import error_response, tool_response
from tests.making import chunk, hit, place

URL = "https://example.com/textbook/chapter3#section3-2"
PREREQUISITES = chunk(
    "Before installing, ensure you have Python 3.11 or higher...",
    place(module="ros2", chapter=3),
    page_title="Chapter 1: Getting Started",
    section_title="Prerequisites",
    chapter_title="Chapter 3: Robot Operating System 2",
    url=URL,
)
HIT = replace(hit(PREREQUISITES), similarity=0.856)
METRICS = ConfidenceMetrics(
    average_similarity=0.87,
    min_similarity=0.78,
    max_similarity=0.94,
    num_chunks=5,
    chunk_diversity=0.23,
    confidence=0.87,
    confidence_level="high",
    should_answer=True,
)
ACCOUNT = Account(
    question="What are the prerequisites?",
    standalone="What are the prerequisites?",
    metrics=METRICS,
    model="gpt-4o-mini",
    tokens_used=12,
    retrieval_count=1,
    look_ups=(),
    timings=Timings(retrieval_time_ms=1.5, generation_time_ms=2.5, total_time_ms=4.0),
    state="completed",
)
ANSWER = Answer(
    text="You need Python 3.11 or higher. [1]",
    citations=(citation(1, HIT, "ensure you have Python 3.11 or higher"),),
    statements=(
        Statement(
            text="You need Python 3.11 or higher. [1]",
            start=0,
            end=35,
            citations=(1,),
            verdict="supported",
            support=0.9,
            evidence="ensure you have Python 3.11 or higher",
            chunk_id=PREREQUISITES.id,
        ),
    ),
    considered=(),
    removed=Removals(),
    account=ACCOUNT,
)
REFUSAL = Refusal(
    text="I couldn't find that information in the book.",
    reason="no_results",
    nearest=(),
    outside_scope=(),
    other_books=(),
    considered=(),
    removed=Removals(),
    account=replace(ACCOUNT, metrics=replace(METRICS, num_chunks=0, max_similarity=0.0).refused(), state="no_results"),
)


def test_the_second_documents_tool_response() -> None:
    """Its example, key for key; and its error answer."""
    assert json.loads(tool_response("What are the prerequisites?", {1: HIT})) == {
        "results": [
            {
                "chunk_text": "Before installing, ensure you have Python 3.11 or higher...",
                "page_title": "Chapter 1: Getting Started",
                "section_heading": "Prerequisites",
                "source_url": URL,
                "similarity_score": 0.856,
                "rank": 1,
            }
        ],
        "total_results": 1,
        "query": "What are the prerequisites?",
    }
    assert json.loads(error_response("q", "down")) == {"error": "down", "query": "q"}


def test_the_third_documents_formats() -> None:
    """To the letter, but for the empty line before `---`."""
    assert format_for_agent([]) == NOTHING_FOUND == "No relevant content found in the book."
    assert format_for_agent([HIT]) == f"[1] Source: {URL}\n    Score: 0.86\n    Content: {PREREQUISITES.text}\n"
    footer = f"\n\n---\n**Sources:**\n[1] {URL} (score: 0.86)"
    assert format_sources_footer([HIT]) == footer
    assert format_sources_footer([]) == ""
    assert format_with_sources(ANSWER) == ANSWER.text + footer
    assert format_with_sources(REFUSAL) == REFUSAL.text


def test_the_fourth_documents_request_and_response() -> None:
    """Its example request is taken; the response has every field of its example, and of its sources."""
    ChatRequest.model_validate(
        {
            "message": "How do ROS 2 nodes communicate?",
            "session_id": "550e8400-e29b-41d4-a716-446655440000",
            "stream": False,
            "top_k": 5,
            "similarity_threshold": 0.7,
        }
    )
    body = ChatResponse.of(ANSWER, book_id="b").model_dump()
    expected = "response confidence sources session_id timestamp confidence_level should_answer".split()
    assert set(expected) <= body.keys()
    assert (body["confidence"], body["confidence_level"], body["should_answer"]) == (0.87, "high", True)
    [source] = body["sources"]
    assert {name: source[name] for name in ("similarity_score", "chapter", "section", "url", "chunk_index")} == {
        "similarity_score": 0.856,
        "chapter": "Chapter 3: Robot Operating System 2",
        "section": "Prerequisites",
        "url": URL,
        "chunk_index": 0,
    }
    metrics = "average_similarity min_similarity max_similarity num_chunks chunk_diversity".split()
    assert set(metrics) <= body["metrics"].keys()


def test_the_fourth_documents_retrieval_result() -> None:
    """Equal lengths, the mean of the scores, and an embedding as long as the embedder's vectors."""
    findings = Findings(
        query="q",
        mode="hybrid",
        where=ChunkFilter(book_id="b"),
        language="en",
        hits=(replace(HIT, similarity=0.92), replace(HIT, similarity=0.85)),
        vector=(0.1, 0.2, 0.3),
        total_found=2,
        query_time_ms=1.0,
    )
    view = retrieval_result(findings, METRICS)

    assert len(view.chunks) == len(view.scores) == len(view.metadata) == 2
    assert view.average_score == (0.92 + 0.85) / 2
    assert (view.has_sufficient_context, len(view.query_embedding)) == (True, 3)
    assert not retrieval_result(findings, replace(METRICS, confidence_level="low")).has_sufficient_context


def test_the_fifth_documents_agent_response() -> None:
    """Pages are named in the text; high for high and medium, low for low and insufficient, none without hits."""
    view = agent_response(ANSWER)

    assert view.answer == "You need Python 3.11 or higher. [Source: Chapter 1: Getting Started]"
    [page] = view.citations
    assert (page.page_title, page.page_url, page.module_name) == (
        "Chapter 1: Getting Started",
        "https://example.com/textbook/chapter3",
        "ros2",
    )
    assert (view.retrieval_time_ms, view.generation_time_ms, view.total_time_ms) == (1.5, 2.5, 4.0)
    assert (view.confidence, view.has_relevant_results, view.error) == ("high", True, None)
    assert agent_response(REFUSAL).confidence == "none"
    low = replace(ANSWER, account=replace(ACCOUNT, metrics=replace(METRICS, confidence_level="low")))
    assert agent_response(low).confidence == "low"
    assert failed_response("q", "no key").error == "no key"
