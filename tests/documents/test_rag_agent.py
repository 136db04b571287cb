"""The third design document, *RAG Agent*: its classes, run on Lectern's values, give what Lectern's own give."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lectern import AgentConfig, views
from tests.documents.conftest import QUESTION, Asked
from tests.documents.running import names_after

CONTEXT = '''
@dataclass
class RetrievalContext:
    """Context retrieved from Qdrant for a query."""
    query: str                           # Original user query
    results: list[RetrievalResult]       # Retrieved chunks (from models.py)
    retrieved_at: datetime               # Timestamp of retrieval
    filter_applied: Optional[str] = None # Any filter prefix used

    def format_for_agent(self) -> str:
        """Format retrieved content for agent context."""
        if not self.results:
            return "No relevant content found in the book."

        lines = []
        for i, r in enumerate(self.results, 1):
            lines.append(f"[{i}] Source: {r.source_url}")
            lines.append(f"    Score: {r.score:.2f}")
            lines.append(f"    Content: {r.content}")
            lines.append("")
        return "\\n".join(lines)

    def format_sources_footer(self) -> str:
        """Format sources for response footer."""
        if not self.results:
            return ""

        lines = ["", "---", "**Sources:**"]
        for i, r in enumerate(self.results, 1):
            lines.append(f"[{i}] {r.source_url} (score: {r.score:.2f})")
        return "\\n".join(lines)
'''
RESPONSE = '''
@dataclass
class AgentResponse:
    """Complete response from the RAG agent."""
    content: str                         # The answer text
    sources: list[RetrievalResult]       # Chunks that were cited
    model: str                           # Model that generated response
    tokens_used: int                     # Total tokens (prompt + completion)
    retrieval_count: int                 # Number of chunks retrieved
    created_at: datetime                 # Response timestamp

    def format_with_sources(self) -> str:
        """Format response with source citations appended."""
        if not self.sources:
            return self.content

        footer_lines = ["", "---", "**Sources:**"]
        for i, s in enumerate(self.sources, 1):
            footer_lines.append(f"[{i}] {s.source_url} (score: {s.score:.2f})")

        return self.content + "\\n".join(footer_lines)
'''
CONVERSATION = '''
@dataclass
class Conversation:
    """A conversation session with the agent."""
    id: str                    # Unique conversation identifier (UUID)
    messages: list[Message]    # Ordered list of messages
    created_at: datetime       # Session start time
    model: str                 # OpenAI model used (e.g., "gpt-4o-mini")

    def add_message(self, message: Message) -> None:
        """Append a message to the conversation."""
        self.messages.append(message)

    def to_openai_messages(self) -> list[dict]:
        """Convert to OpenAI API format."""
        return [
            {"role": m.role, "content": m.content, **({"tool_calls": m.tool_calls} if m.tool_calls else {})}
            for m in self.messages
        ]
'''
CONFIG = '''
@dataclass
class AgentConfig:
    """Configuration specific to the RAG agent."""
    openai_api_key: str         # Required
    openai_model: str           # Default: "gpt-4o-mini"
    top_k: int                  # Default: 5
    score_threshold: float      # Default: 0.0 (accept all)
    max_conversation_turns: int # Default: 50

    @classmethod
    def from_env(cls) -> "AgentConfig":
        """Load configuration from environment variables."""
        return cls(
            openai_api_key=os.getenv("OPENAI_API_KEY"),
            openai_model=os.getenv("OPENAI_MODEL", "gpt-4o-mini"),
            top_k=int(os.getenv("AGENT_TOP_K", "5")),
            score_threshold=float(os.getenv("AGENT_SCORE_THRESHOLD", "0.0")),
            max_conversation_turns=int(os.getenv("AGENT_MAX_TURNS", "50")),
        )
'''
BLANK_LINE = "\n"  # before the rule: without it, Markdown makes the answer's last line a heading


def test_its_context_formats_alike(asked: Asked) -> None:
    """For the model to the letter; the footer but for an empty line before the rule."""
    ours = views.retrieval_context(asked.found)
    theirs = names_after(CONTEXT)["RetrievalContext"]
    same = theirs(query=ours.query, results=list(ours.results), retrieved_at=datetime.now(UTC))
    nothing = theirs(query="?", results=[], retrieved_at=datetime.now(UTC))

    assert ours.format_for_agent() == same.format_for_agent()
    assert ours.format_sources_footer() == BLANK_LINE + same.format_sources_footer()
    assert views.format_for_agent([]) == nothing.format_for_agent()
    assert views.format_sources_footer([]) == nothing.format_sources_footer()
    assert datetime.fromisoformat(ours.retrieved_at).tzinfo is not None


def test_its_response_is_a_reply(asked: Asked) -> None:
    """Made of a reply's own fields, its class prints what the reply prints."""
    names = "content sources model tokens_used retrieval_count created_at".split()
    fields: dict[str, Any] = {name: getattr(asked.reply, name) for name in names}
    same = names_after(RESPONSE)["AgentResponse"](**fields)
    printed = same.format_with_sources()

    assert printed.startswith(asked.reply.text + "\n---\n**Sources:**\n[1] ")
    assert asked.reply.format_with_sources() == printed.replace("\n---\n", f"{BLANK_LINE}\n---\n")
    assert asked.reply.tokens_used >= 0
    assert asked.reply.retrieval_count >= len(asked.reply.sources) >= 1


def test_its_conversation_gives_the_same_messages(asked: Asked) -> None:
    """Its loop over our messages gives ours, which also say which call a result answers, as the API wants it."""
    ours = asked.conversation
    same = names_after(CONVERSATION)["Conversation"](
        id=ours.id, messages=list(ours.messages), created_at=ours.created_at, model=ours.model
    )
    sent = [{**message, "tool_calls": list(message.get("tool_calls", ()))} for message in ours.to_openai_messages()]
    printed = [{**message, "tool_calls": list(message.get("tool_calls", ()))} for message in same.to_openai_messages()]

    assert [{key: part for key, part in message.items() if key != "tool_call_id"} for message in sent] == printed
    assert [message["content"] for message in sent if message["role"] == "user"] == [QUESTION]
    assert sent[3]["tool_call_id"] == sent[2]["tool_calls"][0]["id"]


@pytest.mark.parametrize(
    "environment",
    [
        {"AGENT_SCORE_THRESHOLD": "0.0"},
        {"OPENAI_MODEL": "gpt-4-turbo", "AGENT_TOP_K": "7", "AGENT_SCORE_THRESHOLD": "0.4", "AGENT_MAX_TURNS": "9"},
        {"OPENAI_API_KEY": "sk-" + "a" * 45, "AGENT_SCORE_THRESHOLD": "1"},
    ],
)
def test_its_config_reads_the_same(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Field by field. Only where no threshold is set there is another default."""
    import os

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    same = names_after(CONFIG, os=os)["AgentConfig"].from_env()
    ours = AgentConfig.from_env()

    assert vars(same) == {name: getattr(ours, name) for name in vars(same)}
