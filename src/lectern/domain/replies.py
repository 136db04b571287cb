"""Questions and replies. A reply is an answer or a refusal. Both are normal outcomes, so a refusal is a value: neither
an exception nor a special phrase."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from lectern.domain.clock import utc_now
from lectern.domain.errors import BadInput
from lectern.domain.evidence import ConfidenceMetrics, Hit
from lectern.domain.retrieval import RetrievedPassage, format_sources_footer, passage_of
from lectern.domain.scope import ChunkFilter, ResolvedScope, refuse_undecodable

RefusalReason = Literal["no_results", "weak_evidence", "unsupported", "off_topic", "blocked", "other_book"]
Verdict = Literal["supported", "unconfirmed", "doubtful"]
CutReason = Literal["length", "content_filter"]
ReplyState = Literal["completed", "low_confidence", "no_results"]
TurnState = Literal["pending", "retrieving", "generating", "completed", "low_confidence", "no_results", "error"]
MESSAGE_LENGTH = (1, 1000)  # characters after strip
TOP_K = (1, 100)  # passages
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A number in the answer, the chunk behind it and the passage a reader is shown."""

    number: int
    hit: Hit
    passage: str  # at most 500 characters around the cited sentence
    section: str  # the nearest heading above that sentence, else the lesson's title
    url: str  # opens at that heading
    fragment_url: str  # the same, and a browser marks the quoted block
    source_file: str  # of the quoted block: the lesson's, or the one that it includes
    line_start: int  # of the quoted block, in that file
    line_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Whether passages support a claim."""

    verdict: Verdict
    support: float  # 0…1: how sure it is that they do
    evidence: str = ""  # the words of a passage that say it, or that say otherwise
    passage: int | None = None  # the place of the passage with these words among those that were judged
    reason: str = ""  # why the claim is doubtful, for a reader
    is_soft: bool = False  # it does not sound like the passages, and nothing concrete is shown against it


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A claim of the answer, with the sources that it cites and whether the passages support it."""

    text: str  # as in the answer, with markers
    start: int  # position in the answer's text
    end: int
    citations: tuple[int, ...]  # numbers of sources
    verdict: Verdict
    support: float
    evidence: str = ""  # the words of a passage that say it, or that say otherwise
    chunk_id: str | None = None  # of the passage with these words
    reason: str = ""  # why the claim is doubtful


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """Counts of what was removed from a draft or changed in it."""

    invented_citations: int = 0  # markers we never issued
    links: int = 0  # links, images and active tags that the passages do not have
    blocked: int = 0  # words of our instructions, and secrets
    characters: int = 0  # control characters, lone surrogates, and what exceeds the caps
    hidden: int = 0  # doubtful claims, if the operator hides them
    corrected_citations: int = 0  # claims whose marker was replaced by the passage that bears them


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """One retrieval of a turn, ours or the model's."""

    tool_name: str
    query: str
    results_count: int
    avg_similarity: float
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A call of a tool and what it returned, as the model saw them."""

    call_id: str
    name: str
    arguments: str  # JSON
    output: str
    timestamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestLesson:
    """A lesson that is suggested in a refusal."""

    title: str
    url: str
    parent_doc_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How the time of one turn was spent, in milliseconds."""

    retrieval_time_ms: float
    generation_time_ms: float
    total_time_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What every reply carries, answer or refusal."""

    question: str  # as the reader put it
    standalone: str  # as it was searched for
    metrics: ConfidenceMetrics
    model: str
    tokens_used: int
    retrieval_count: int
    look_ups: tuple[LookUp, ...]
    timings: Timings
    state: ReplyState
    where: ChunkFilter | None = None  # what the reader's filters came to
    instructions: str = ""  # the system message of the turn
    tool_uses: tuple[ToolUse, ...] = ()
    created_at: str = field(default_factory=utc_now)


class ReplyNames:
    """A reply under the names of the third design document."""

    __slots__ = ()
    text: str
    account: Account

    @property
    def content(self) -> str:
        """The text."""
        return self.text

    @property
    def sources(self) -> tuple[RetrievedPassage, ...]:
        """The cited passages, in the order of their numbers; none for a refusal."""
        return ()

    @property
    def model(self) -> str:
        """The model that answered."""
        return self.account.model

    @property
    def tokens_used(self) -> int:
        """Tokens of all calls to the model."""
        return self.account.tokens_used

    @property
    def retrieval_count(self) -> int:
        """The number of passages that were retrieved."""
        return self.account.retrieval_count

    @property
    def created_at(self) -> str:
        """When the reply was made."""
        return self.account.created_at

    def format_with_sources(self) -> str:
        """The text with its sources below."""
        return self.text + format_sources_footer(self.sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(ReplyNames):
    """What the book says, each statement cited and judged."""

    text: str
    citations: tuple[Citation, ...]
    statements: tuple[Statement, ...]
    considered: tuple[Hit, ...]  # given to the answerer, not cited
    removed: Removals
    account: Account
    cut: CutReason | None = None  # why the answer ends early
    lowered: bool = False  # the verdicts on its claims made the level lower than the evidence alone
    kind: Literal["answer"] = "answer"

    @property
    def sources(self) -> tuple[RetrievedPassage, ...]:
        """The cited passages, in the order of their numbers."""
        passages = [passage_of(citation.hit, rank=citation.number) for citation in self.citations]
        return tuple(
            replace(passage, source_url=citation.url)
            for passage, citation in zip(passages, self.citations, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(ReplyNames):
    """The book does not say, or not clearly enough."""

    text: str
    reason: RefusalReason
    nearest: tuple[NearestLesson, ...]  # from the reader's scope
    outside_scope: tuple[NearestLesson, ...]  # lessons that have it, which the reader's filters hide
    other_books: tuple[str, ...]  # books that cover the question
    considered: tuple[Hit, ...]
    removed: Removals
    account: Account
    suggestions: tuple[str, ...] = ()  # questions that the book answers
    withdrawn: bool = False  # a model's draft was taken back because its claims do not rest on the book
    kind: Literal["refusal"] = "refusal"


Reply = Answer | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A question that was answered earlier in the same conversation. Refusals are never one."""

    question: str
    answer: str
    standalone: str | None = None  # as that question was searched for
    tool_uses: tuple[ToolUse, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question by one reader."""

    text: str
    scope: ResolvedScope
    top_k: int | None = None
    similarity_threshold: float | None = None
    history: tuple[Exchange, ...] = ()  # answered turns of the same conversation, oldest first
    stream: bool = False  # whether the text is wanted as it comes
    readable: frozenset[str] | None = None  # books that a refusal may point to; None for all

    def __post_init__(self) -> None:
        check_question(self.text, self.top_k, self.similarity_threshold)


def check_question(text: str, top_k: int | None, similarity_threshold: float | None) -> None:
    """Refuse a question that is out of range, before any work is done."""
    refuse_undecodable(text, "message")
    low, high = MESSAGE_LENGTH
    length = len(text.strip())
    if not low <= length <= high:
        raise BadInput(f"a question has {low} to {high} characters, this one has {length}", field="message")
    if top_k is not None and (isinstance(top_k, bool) or not TOP_K[0] <= top_k <= TOP_K[1]):
        raise BadInput(f"top_k must be {TOP_K[0]} to {TOP_K[1]}, not {top_k}", field="top_k")
    if similarity_threshold is not None and (
        isinstance(similarity_threshold, bool) or not 0 <= similarity_threshold <= 1
    ):
        raise BadInput(
            f"similarity_threshold must be 0 to 1, not {similarity_threshold:g}", field="similarity_threshold"
        )
    if _CONTROL.search(text):
        raise BadInput("the question contains control characters; send plain text", field="message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """The turn has entered another state."""

    state: TurnState
    kind: Literal["state"] = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """The search is done; nothing has been written yet."""

    hits: tuple[Hit, ...]
    metrics: ConfidenceMetrics
    kind: Literal["evidence"] = "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """More of the answer. Its links and secrets are filtered; its claims are judged later."""

    text: str
    kind: Literal["delta"] = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The verdict on a claim of the text that was sent so far. A later event with the same number replaces it."""

    number: int  # of the claim, from 0
    statement: Statement  # its positions are those in the text that was sent
    kind: Literal["verdict"] = "verdict"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The reply; the only authoritative event."""

    reply: Reply
    kind: Literal["replied"] = "replied"


ReplyEvent = Entered | EvidenceFound | Delta | Judged | Replied
