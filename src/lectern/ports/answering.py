"""Ports of answering: what weighs the evidence, writes the draft and judges it, and what a model may look up."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from lectern.domain.evidence import ConfidenceLevel, ConfidenceMetrics, Hit
from lectern.domain.replies import CutReason, Exchange, Judgement, ToolUse


class Entailment(Protocol):
    """Reads a statement and its evidence together."""

    async def log_odds(self, statement: str, evidence: str) -> float | None:
        """The log-odds that the evidence supports the statement; None if it cannot be read."""


Pieces = tuple[str, tuple[str, ...]]  # a section as it is searched for answers: its heading and its pieces


class AnswerLocator(Protocol):
    """Reads a question and passages together."""

    async def find(self, question: str, passages: Sequence[Pieces]) -> list[tuple[float, ...]]:
        """For each piece of each passage, the log-odds that it answers the question, against no piece answering it."""


class Judge(Protocol):
    """Says whether passages support a claim, without a language model."""

    async def judge(self, claim: str, passages: Sequence[str]) -> Judgement:
        """The verdict on one claim, given passages; its markers are already removed."""

    async def vetoes(self, claim: str, passages: Sequence[str]) -> bool:
        """Whether a claim has a number, unit or name that the passages do not bear: then it is not supported, whatever
        a language model says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClaim:
    """A claim that the local judge left unconfirmed."""

    text: str
    passages: tuple[int, ...]  # numbers of the passages that it cites; none if it cites none


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What a language model says of a claim. Its quotation is unchecked."""

    verdict: Literal["supported", "contradicted", "not_said"]
    quote: str  # the words of a passage that say it or say otherwise
    passage: int | None  # the number of the passage with these words


class ModelJudge(Protocol):
    """Asks a language model about claims, in one call."""

    async def opinions(
        self, claims: Sequence[OpenClaim], passages: Mapping[int, str]
    ) -> tuple[list[Opinion | None], Usage]:
        """An opinion on each claim, None if the model gave none; empty if the call failed. Never raises."""


class ConfidencePolicy(Protocol):
    """How well the evidence covers a question, and whether it is enough to answer."""

    @property
    def floor(self) -> float:
        """The relevance below which a hit is noise."""

    def relevance(self, cosine: float) -> float:
        """The cosine on the scale that means the same for every embedder."""

    def ceiling(self, level: ConfidenceLevel) -> float:
        """The highest confidence of a level."""

    def measure(self, question: str, field: Sequence[Hit], hits: Sequence[Hit]) -> ConfidenceMetrics:
        """The metrics of `hits`, the passages for the answerer; `field` are the first hits of the search, whose number
        does not depend on the request."""


class Desk(Protocol):
    """What may be looked up in one turn: passages of this book within this reader's scope, and the book's table of
    contents. Results are JSON for a model; a passage in them has a number for citing."""

    async def retrieve(self, query: str, top_k: int | None, similarity_threshold: float | None) -> str:
        """Passages for another query. The threshold may be raised, never lowered, and the filters stay."""

    async def read_lesson(self, parent_doc_id: str) -> str:
        """A whole lesson of the reader's scope."""

    async def outline(self) -> str:
        """The book's table of contents."""

    def record(self, use: ToolUse) -> None:
        """Keep a call of a tool with the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A question to be answered, with the search that was already done for it."""

    question: str
    retrieved: str  # the tool's answer
    history: tuple[Exchange, ...]
    desk: Desk
    stream: bool  # whether the text is wanted as it comes


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What an answer cost; the last value that an answerer yields."""

    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The provider ended the answer early."""

    reason: CutReason


class Answerer(Protocol):
    """Writes a draft: a language model, or the offline one."""

    @property
    def model(self) -> str:
        """The model's name in a reply."""

    @property
    def instructions(self) -> str:
        """The system message of a run; an answer must not repeat it to a reader."""

    def write(self, task: Assignment) -> AsyncIterator[str | Cut | Usage]:
        """An answer with `[n]` markers, unchecked, in pieces of any size; `Cut` if the provider ended it early; then
        what it cost. An answer that is empty or broken off is a `ProviderError`."""

    async def summary(self, questions: Sequence[str]) -> str | None:
        """What a conversation is about, in one line; None if this answerer cannot say."""

    async def standalone(self, question: str, history: Sequence[Exchange]) -> tuple[str | None, Usage]:
        """The question as it would be asked without the conversation before it, and what that cost; None if this
        answerer cannot say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as it is in the tool's response."""

    number: int
    text: str
    heading: str = ""  # of its section, else of its page
    similarity: float = 0.0
    page: str = ""  # its lesson's title


class PassageWriter(Protocol):
    """Writes an answer from passages alone, without a language model."""

    @property
    def model(self) -> str:
        """The model's name in a reply."""

    async def write(self, question: str, passages: Sequence[Passage]) -> str:
        """An answer with `[n]` markers, or the word for "not covered" if no passage has to do with the question."""
