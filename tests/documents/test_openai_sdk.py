"""The second design document, *RAG Agent with OpenAI SDK*: its tool, its formats, its settings, its dialogues."""

from __future__ import annotations

import inspect
import json
import uuid
from typing import Any

import pytest

from lectern import RETRIEVAL_TOOL, AgentConfig, Message, execute_retrieval_tool
from lectern.answering.views import format_tool_response, retrieval_context
from lectern.app.settings import Settings, variables
from tests.documents.conftest import QUESTION, Asked
from tests.documents.running import names_after, read, send

TOOL = """
{
  "type": "function",
  "function": {
    "name": "retrieve_documentation",
    "description": "Search the book documentation for relevant information based on a question or topic. Returns chunks of text from the book with metadata about their source.",
    "parameters": {
      "type": "object",
      "properties": {
        "query": {
          "type": "string",
          "description": "The question or topic to search for in the documentation"
        },
        "top_k": {
          "type": "integer",
          "description": "Number of most relevant chunks to retrieve (default: 5)",
          "default": 5
        },
        "similarity_threshold": {
          "type": "number",
          "description": "Minimum similarity score for results (0.0-1.0, default: 0.0)",
          "default": 0.0
        }
      },
      "required": ["query"]
    }
  }
}
"""  # noqa: E501  # as it is printed
SIGNATURE = """
def execute_retrieval_tool(
    query: str,
    top_k: int = 5,
    similarity_threshold: float = 0.0
) -> str:
    ...
"""
FORMAT = '''
def format_tool_response(results: list[RetrievalResult], query: str) -> str:
    """
    Convert RetrievalResult objects to JSON string for agent.

    Returns:
        JSON string with results formatted for readability and citation
    """
    return json.dumps({
        "results": [
            {
                "chunk_text": r.chunk_text,
                "page_title": r.page_title,
                "section_heading": r.section_heading,
                "source_url": r.source_url,
                "similarity_score": r.similarity_score,
                "rank": r.rank
            }
            for r in results
        ],
        "total_results": len(results),
        "query": query
    }, indent=2)
'''
ENVIRONMENT = """
QDRANT_URL QDRANT_API_KEY QDRANT_COLLECTION_NAME COHERE_API_KEY COHERE_MODEL OPENAI_API_KEY OPENAI_MODEL
"""
TALK = (  # question, and what the lesson's text must name for the talk to have kept its subject
    "What is quality of service?",
    "Tell me more",
    "Which policies are there?",
    "What are the default values?",
    "Can you give an example?",
    "When do two nodes refuse to connect?",
    "Why does that happen?",
    "How can I see it?",
    "What does transient local mean?",
    "And best effort?",
    "When should I use it?",
    "Tell me more about that",
)


def without(value: Any, *names: str) -> Any:
    """A JSON value without these keys, wherever they are."""
    if isinstance(value, dict):
        return {key: without(part, *names) for key, part in value.items() if key not in names}
    return [without(part, *names) for part in value] if isinstance(value, list) else value


def test_its_tool_is_the_tool(server: str) -> None:
    """Here and over HTTP, but for the limits, which it states in words."""
    assert without(RETRIEVAL_TOOL, "minimum", "maximum") == json.loads(TOOL)
    assert read(server, "/tools") == [RETRIEVAL_TOOL]
    expected = inspect.signature(names_after(SIGNATURE)["execute_retrieval_tool"])
    assert inspect.signature(execute_retrieval_tool) == expected


def test_its_code_formats_what_the_tool_answers(server: str, asked: Asked) -> None:
    """Key for key, with the plain cosine beside each score; four digits of a score are sent."""
    results = retrieval_context(asked.found).results
    printed = json.loads(names_after(FORMAT)["format_tool_response"](list(results), QUESTION))
    for result in printed["results"]:
        result["similarity_score"] = round(result["similarity_score"], 4)

    assert without(json.loads(format_tool_response(results, QUESTION)), "similarity") == printed
    assert without(send(server, "/tools/retrieve_documentation", {"query": QUESTION}).json(), "similarity") == printed
    assert printed["total_results"] == len(printed["results"]) == 5
    for result in printed["results"]:
        assert result["chunk_text"]
        assert result["page_title"]
        assert result["source_url"]
        assert 0 <= result["similarity_score"] <= 1
    assert [result["rank"] for result in printed["results"]] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("wrong", [{"query": ""}, {"top_k": 0}, {"top_k": 21}, {"similarity_threshold": 1.1}])
def test_its_limits_are_the_tools(server: str, wrong: dict[str, Any]) -> None:
    """A call outside of them is an error that names the argument."""
    answer = send(server, "/tools/retrieve_documentation", {"query": QUESTION, **wrong})

    assert answer.status_code == 422
    assert answer.json()["field"] in wrong


def test_its_environment_is_read() -> None:
    """Every variable of its `.env`; its configuration has its names."""
    assert set(ENVIRONMENT.split()) <= variables().keys()
    config = AgentConfig.of(Settings(_env_file=None, OPENAI_MODEL="gpt-3.5-turbo"))  # type: ignore[call-arg]  # by alias
    assert config.model == "gpt-3.5-turbo"
    assert config.system_prompt
    assert (config.max_tokens, config.openai_api_key) == (None, None)
    assert config.temperature is not None
    assert 0 <= config.temperature <= 1


def test_a_conversation_has_the_form_that_it_says(asked: Asked) -> None:
    """Instructions, question, call, result, answer; its own first message can be made."""
    messages = asked.conversation.messages

    assert [message.role for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert messages[3].name == "retrieve_documentation"
    assert json.loads(messages[3].content)["query"] == QUESTION
    assert Message(role="system", content="SYSTEM_PROMPT", timestamp=messages[0].timestamp).role == "system"


def test_nodes_communicate_by_topics_services_and_actions(asked: Asked) -> None:
    """The documents' question has the right answer without a language model."""
    assert {"Topics", "Services", "Actions"} <= {word.strip("*:") for word in asked.reply.text.split()}
    assert asked.reply.account.metrics.should_answer


def test_a_talk_of_twelve_turns_keeps_its_subject(server: str) -> None:
    """Without a language model: each turn is answered from the lesson that the talk is about, or, refused, points to
    it; and each is kept with its retrieval."""
    session = str(uuid.uuid4())
    for turn, question in enumerate(TALK, start=1):
        body = send(server, "/chat/run", {"message": question, "session_id": session}).json()
        pages = [source["url"] for source in body["sources"]] or [lesson["url"] for lesson in body["nearest"]]
        assert any("quality-of-service" in page for page in pages), (turn, question, body["standalone"], pages)
    thread = read(server, f"/threads/{session}")

    assert thread["turn_count"] == len(TALK)
    assert [message["role"] for message in thread["messages"]] == ["user", "assistant"] * len(TALK)
    assert [call["tool_name"] for call in thread["retrieval_history"]] == ["retrieve_documentation"] * len(TALK)
    assert "quality of service" in thread["topic_summary"].lower()
