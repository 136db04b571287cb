"""A turn's values: the question, everybody who has a part in answering it, and the events it passes through."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from lectern.answering.desk import Library
from lectern.answering.outgoing import Confidential
from lectern.answering.refusing import PolicyOf
from lectern.answering.second_look import SecondLook
from lectern.answering_ports import Answerer, Judge
from lectern.domain.errors import BadInput
from lectern.domain.evidence import ConfidenceMetrics, Hit
from lectern.domain.queries import Scope, refuse_undecodable
from lectern.domain.replies import Exchange, Reply, TurnState

MESSAGE_LENGTH = (1, 1000)  # characters after strip
TOP_K = (1, 100)  # passages
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question by one reader."""

    text: str
    scope: Scope = field(default_factory=Scope)
    top_k: int | None = None
    similarity_threshold: float | None = None
    history: tuple[Exchange, ...] = ()  # answered turns of the same talk, oldest first
    stream: bool = False  # whether the text is wanted as it comes
    readable: frozenset[str] | None = None  # books that a refusal may point to; None for all

    def __post_init__(self) -> None:
        refuse_undecodable(self.text, "message")
        low, high = MESSAGE_LENGTH
        length = len(self.text.strip())
        if not low <= length <= high:
            raise BadInput(f"a question has {low} to {high} characters, this one has {length}", field="message")
        if self.top_k is not None and not TOP_K[0] <= self.top_k <= TOP_K[1]:
            raise BadInput(f"top_k must be {TOP_K[0]} to {TOP_K[1]}, not {self.top_k}", field="top_k")
        if self.similarity_threshold is not None and not 0 <= self.similarity_threshold <= 1:
            raise BadInput(
                f"similarity_threshold must be 0 to 1, not {self.similarity_threshold:g}", field="similarity_threshold"
            )
        if _CONTROL.search(self.text):
            raise BadInput("the question contains control characters; send plain text", field="message")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringRules:
    """What an operator may set about answers."""

    refusal: str
    disclaimer: str
    top_k: int = 5
    threshold: float | None = None  # the least cosine of a passage; None: the policy's floor
    budget: float = 60.0  # seconds of a turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """Everybody who has a part in a turn."""

    library: Library
    answerer: Answerer
    judge: Judge
    policy: PolicyOf
    second_look: SecondLook | None  # where the answerer cannot tell by itself that passages do not answer
    confidential: Confidential
    rules: AnsweringRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """The turn has gone on to another state."""

    state: TurnState
    kind: Literal["state"] = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFound:
    """Retrieval is over; nothing has been written yet."""

    hits: tuple[Hit, ...]
    metrics: ConfidenceMetrics
    kind: Literal["evidence"] = "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """More of the answer, checked."""

    text: str
    kind: Literal["delta"] = "delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replied:
    """The reply; the only authoritative event."""

    reply: Reply
    kind: Literal["replied"] = "replied"


ReplyEvent = Entered | EvidenceFound | Delta | Replied
