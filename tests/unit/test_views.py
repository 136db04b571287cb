"""Each design document's view of one reply, held against the document's own words."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest
from pydantic import ValidationError

from lectern.answering.citations import citation
from lectern.answering.views import (
    NOTHING_FOUND,
    agent_response,
    answer_or_error,
    build_prompt,
    failed_response,
    format_for_agent,
    format_sources_footer,
    format_tool_response,
    format_with_sources,
    retrieval_context,
    retrieval_result,
)
from lectern.domain.errors import BadInput, ProviderError
from lectern.domain.evidence import ConfidenceMetrics, Findings, Hit
from lectern.domain.replies import Account, Answer, Refusal, Removals, Statement, Timings, check_question
from lectern.domain.scope import ChunkFilter
from lectern.schemas.chat import ChatRequest, ChatResponse
from lectern.schemas.search import SearchResult
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
HIT = replace(hit(PREREQUISITES), similarity=0.61, relevance=0.856)
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
    """Its example, key for key, with the cosine beside the relevance; and its error answer."""
    assert json.loads(tool_response("What are the prerequisites?", {1: HIT})) == {
        "results": [
            {
                "chunk_text": "Before installing, ensure you have Python 3.11 or higher...",
                "page_title": "Chapter 1: Getting Started",
                "section_heading": "Prerequisites",
                "source_url": URL,
                "similarity_score": 0.856,
                "similarity": 0.61,
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
    assert (source["relevance"], source["similarity"]) == (0.856, 0.61)
    metrics = "average_similarity min_similarity max_similarity num_chunks chunk_diversity".split()
    assert set(metrics) <= body["metrics"].keys()


def test_the_fourth_documents_retrieval_result() -> None:
    """Equal lengths, the mean of the scores, and an embedding as long as the embedder's vectors."""
    found = Findings(
        query="q",
        mode="hybrid",
        where=ChunkFilter(book_id="b"),
        language="en",
        hits=(replace(HIT, relevance=0.92), replace(HIT, relevance=0.85)),
        vector=(0.1, 0.2, 0.3),
        total_found=2,
        query_time_ms=1.0,
    )
    view = retrieval_result(found, METRICS)

    assert len(view.chunks) == len(view.scores) == len(view.metadata) == 2
    assert view.average_score == (0.92 + 0.85) / 2
    assert (view.has_sufficient_context, len(view.query_embedding)) == (True, 3)
    assert not retrieval_result(found, replace(METRICS, confidence_level="low")).has_sufficient_context


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


def findings(*hits: Hit) -> Findings:
    """What a search found."""
    return Findings(
        query="What are the prerequisites?",
        mode="hybrid",
        where=ChunkFilter(book_id="b", module="ros2"),
        language="en",
        hits=hits,
        vector=(),
        total_found=len(hits),
        query_time_ms=1.5,
    )


def test_a_passage_has_every_name_of_the_documents() -> None:
    """The second, third and fifth documents call the same things differently; each finds its own names."""
    context = retrieval_context(findings(HIT))
    [passage] = context.results

    assert passage.chunk_text == passage.content == passage.text == PREREQUISITES.text
    assert passage.similarity_score == passage.score == 0.856
    assert passage.similarity == 0.61
    assert (passage.source_url, passage.page_url) == (URL, URL.partition("#")[0])
    assert (passage.section_heading, passage.module_name, passage.rank) == ("Prerequisites", "ros2", 1)
    assert passage.metadata["content_hash"] == PREREQUISITES.content_hash
    assert uuid.UUID(passage.query_id).version == 4


def test_the_retrieval_context_of_the_third_and_the_fifth_document() -> None:
    """Its fields, its texts, and whether a result is relevant, by a score that can be set."""
    context = retrieval_context(findings(HIT))

    assert context.chunks == context.results
    assert (context.query, context.total_found, context.query_time_ms) == ("What are the prerequisites?", 1, 1.5)
    assert context.filter_applied is not None
    assert context.filter_applied["module"] == "ros2"
    assert context.format_for_agent() == format_for_agent([HIT])
    assert context.format_sources_footer() == format_sources_footer([HIT])
    assert context.retrieved_at.endswith("Z")
    assert context.has_relevant_results
    assert not retrieval_context(findings(HIT), min_relevance_score=0.9).has_relevant_results
    assert not retrieval_context(findings()).has_relevant_results
    assert retrieval_context(findings()).format_for_agent() == NOTHING_FOUND


def test_the_fifth_documents_prompt() -> None:
    """The numbered pages, the question, and braces in a passage as they are."""
    braces = replace(HIT, chunk=replace(PREREQUISITES, text="use {curly} braces"))
    prompt = build_prompt(retrieval_context(findings(HIT, braces)), book_title="Physical AI & Robotics")

    assert "You are an expert assistant for the Physical AI & Robotics book." in prompt
    assert f"[1] Chapter 1: Getting Started\n{PREREQUISITES.text}\n\n[2] Chapter 1" in prompt
    assert "use {curly} braces" in prompt
    assert prompt.rstrip().endswith("USER QUESTION: What are the prerequisites?")


def test_the_second_documents_formatter_is_a_view() -> None:
    """Passages of a context become the tool's JSON; no passage is said in words."""
    context = retrieval_context(findings(HIT))

    assert format_tool_response(context.results, "q") == tool_response("q", {1: HIT})
    assert json.loads(format_tool_response([], "q"))["message"] == NOTHING_FOUND


def test_a_reply_has_the_names_of_the_third_document() -> None:
    """Content, sources and the rest are on the reply itself; a refusal has no sources."""
    assert ANSWER.content == ANSWER.text
    assert [(source.source_url, source.rank) for source in ANSWER.sources] == [(URL, 1)]
    assert (ANSWER.model, ANSWER.tokens_used, ANSWER.retrieval_count) == ("gpt-4o-mini", 12, 1)
    assert ANSWER.created_at == ACCOUNT.created_at == ChatResponse.of(ANSWER, book_id="b").timestamp
    assert ANSWER.format_with_sources() == format_with_sources(ANSWER)
    assert (REFUSAL.sources, REFUSAL.format_with_sources()) == ((), REFUSAL.text)


async def test_the_fifth_documents_response_has_errors_too() -> None:
    """Whoever asks for that view gets it whatever happens; only faults of the program itself are raised."""

    async def fail(error: Exception) -> Answer:
        raise error

    async def succeed() -> Answer:
        return ANSWER

    failed = await answer_or_error(fail(ProviderError("gpt-4o-mini", "did not answer")), "What is a node?")
    answered = await answer_or_error(succeed(), "What are the prerequisites?")

    assert (failed.query, failed.confidence, failed.answer) == ("What is a node?", "none", "")
    assert "did not answer" in (failed.error or "")
    assert answered == agent_response(ANSWER)
    assert not agent_response(ANSWER, min_relevance_score=0.95).has_relevant_results
    with pytest.raises(ZeroDivisionError):
        await answer_or_error(fail(ZeroDivisionError()), "?")


def test_results_name_their_page_and_module() -> None:
    """Search results and sources have the fifth document's names."""
    [source] = ChatResponse.of(ANSWER, book_id="b").sources
    result = SearchResult.of(HIT, [])

    assert (source.page_url, source.module_name) == (result.page_url, result.module_name)
    assert (result.page_url, result.module_name) == (URL.partition("#")[0], "ros2")


@pytest.mark.parametrize("around", ["{}\n", " {}", "\n{} \n"])
def test_white_space_around_a_question_does_not_count(around: str) -> None:
    """A question of 1,000 characters with a newline is as good as one without."""
    assert ChatRequest(message=around.format("x" * 1000)).message == "x" * 1000
    with pytest.raises(ValidationError):
        ChatRequest(message=around.format("x" * 1001))


@pytest.mark.parametrize("field", ["top_k", "similarity_threshold", "hardware_tier_filter", "chapter_min"])
def test_true_is_no_number(field: str) -> None:
    """Over HTTP and from Python it is an error, and does not pass for 1."""
    with pytest.raises(ValidationError):
        ChatRequest.model_validate({"message": "What is a node?", field: True})
    assert ChatRequest.model_validate({"message": "What is a node?", "stream": True}).stream


def test_true_is_no_number_in_python() -> None:
    """The same check without HTTP."""
    with pytest.raises(BadInput, match="top_k"):
        check_question("What is a node?", True, None)  # on purpose
    with pytest.raises(BadInput, match="similarity_threshold"):
        check_question("What is a node?", None, True)  # on purpose
