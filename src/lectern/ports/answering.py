"""The seams of answering: who weighs the evidence, who writes, who judges, and what each may reach. No code here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from lectern.domain.evidence import ConfidenceMetrics, Hit
from lectern.domain.replies import Exchange, Judgement


class Entailment(Protocol):
    """Reads a statement and its evidence together."""

    async def log_odds(self, statement: str, evidence: str) -> float | None:
        """The log-odds that the evidence bears the statement out; None where it cannot be read."""


Pieces = tuple[str, tuple[str, ...]]  # a passage as it is searched for answers: its heading and its pieces


class AnswerLocator(Protocol):
    """Reads a question and passages together."""

    async def find(self, question: str, passages: Sequence[Pieces]) -> list[tuple[float, ...]]:
        """For each piece of each passage the log-odds that it answers the question, against none of them."""


class Judge(Protocol):
    """Says whether passages support a sentence: by rules, by a trained model, or by asking a language model."""

    async def judge(self, sentence: str, passages: Sequence[str]) -> Judgement:
        """The verdict on one sentence, given the passages it cites; markers are already taken out of it."""


class ConfidencePolicy(Protocol):
    """How well the evidence covers a question, and whether it is enough to answer."""

    @property
    def floor(self) -> float | None:
        """The cosine below which a hit is noise, where the policy knows one."""

    def measure(self, question: str, field: Sequence[Hit], handed: Sequence[Hit]) -> ConfidenceMetrics:
        """The metrics of what is handed out; `field` are the first hits whatever is handed out of them."""


class Desk(Protocol):
    """What may be looked up in one turn: this book, in this reader's scope, and nothing else. Answers are JSON for a
    model; every passage they hold has been numbered for citing."""

    async def retrieve(self, query: str, top_k: int | None, similarity_threshold: float | None) -> str:
        """Passages for another query; the threshold may be raised, never lowered, and filters stay."""

    async def read_lesson(self, parent_doc_id: str) -> str:
        """A whole lesson of the reader's scope."""

    async def outline(self) -> str:
        """The book's table of contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A question to be answered, with the retrieval that has already been done for it."""

    question: str
    retrieved: str  # the tool's answer
    history: tuple[Exchange, ...]
    desk: Desk
    stream: bool  # whether the text is wanted as it comes


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What an answer cost; the last that an answerer gives."""

    tokens: int


class Answerer(Protocol):
    """Writes a draft: a language model, or the offline one."""

    @property
    def model(self) -> str:
        """The name a reply gives for who answered."""

    def write(self, task: Assignment) -> AsyncIterator[str | Spent]:
        """An answer with `[n]` markers, unchecked, in pieces of any size; then what it cost."""

    async def summary(self, questions: Sequence[str]) -> str | None:
        """What a talk is about, in one line; None where this answerer cannot tell."""

    async def standalone(self, question: str, history: Sequence[Exchange]) -> tuple[str | None, Spent]:
        """The question as it would be asked without the talk before it, and what that cost; None where this answerer
        cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as the tool response gives it."""

    number: int
    text: str
    heading: str = ""  # of its section, else of its page
    similarity: float = 0.0
    page: str = ""  # its lesson's title


class PassageWriter(Protocol):
    """Writes an answer from passages alone, without a language model."""

    @property
    def model(self) -> str:
        """The name a reply gives for who answered."""

    async def write(self, question: str, passages: Sequence[Passage]) -> str:
        """An answer with `[n]` markers, or nothing where no passage has to do with the question."""
