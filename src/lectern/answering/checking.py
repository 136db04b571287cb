"""Checks a draft sentence by sentence. A sentence is shown only after its check: it must cite a passage of this turn,
disclose nothing confidential, and not be contradicted by what it cites. An unverified sentence is marked. Text is held
back until one sentence is supported; if none is, nothing is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lectern.answering.citations import citation
from lectern.answering.outgoing import Confidential, without_links
from lectern.domain.evidence import Hit
from lectern.domain.replies import Citation, Removals, Statement
from lectern.ports.answering import Judge
from lectern.text.markers import numbers_in, renumbered, without_markers
from lectern.text.plain import unmarked
from lectern.text.sentence_stream import DraftSentence, SentenceStream

UNVERIFIED = " (unverified)"

Passages = Callable[[int], Hit | None]  # by the number that the answerer cites


@dataclass(slots=True)
class Checker:
    """Checks one draft, sentence by sentence."""

    judge: Judge
    passage: Passages
    confidential: Confidential
    statements: list[Statement] = field(default_factory=list)
    removals: Removals = field(default_factory=Removals)
    _stream: SentenceStream = field(default_factory=SentenceStream)
    _numbers: dict[int, int] = field(default_factory=dict)  # passage number → shown number, by first mention
    _quotes: dict[int, str] = field(default_factory=dict)  # the first claim that each passage was cited for
    _pending: list[str] = field(default_factory=list)
    _text: str = ""
    _last_cited: tuple[int, ...] = ()  # by the sentence before; also for a listing without markers

    @property
    def text(self) -> str:
        """All text that may be shown, with renumbered markers."""
        return self._text.strip()

    @property
    def supported(self) -> bool:
        """Whether any statement is supported by its sources."""
        return any(statement.verdict == "supported" for statement in self.statements)

    async def feed(self, text: str) -> str:
        """Add a piece of the draft; returns what may be shown now."""
        return await self._check(self._stream.feed(text))

    async def finish(self) -> str:
        """End the draft; returns the last text that may be shown."""
        return await self._check(self._stream.flush())

    def citations(self) -> tuple[Citation, ...]:
        """The sources, in the order of their first mention."""
        citations = []
        for passage_number, number in self._numbers.items():
            hit = self.passage(passage_number)
            assert hit is not None  # `_sentence` stores only numbers of passages
            citations.append(citation(number, hit, self._quotes[passage_number]))
        return tuple(citations)

    async def _check(self, pieces: Sequence[DraftSentence]) -> str:
        for piece in pieces:
            if (sentence := await self._sentence(piece)) is not None:
                self._pending.append(sentence)
        if not self.supported:
            return ""
        out = "".join(self._pending)
        self._pending.clear()
        out = out if self._text else out.lstrip()
        self._text += out
        return out

    async def _sentence(self, piece: DraftSentence) -> str | None:
        """A sentence as it may be shown, or None if it is removed."""
        listing = piece.text.startswith(("```", "~~~"))
        code, below = _listing(piece.text) if listing else ("", piece.text)
        mentioned = numbers_in(below)  # in a listing `x[0]` cites nothing
        valid = [number for number in mentioned if self.passage(number) is not None]
        if len(valid) < len(mentioned):
            self._count(invented_citations=len(mentioned) - len(valid))
        if not valid and listing:
            valid = list(self._last_cited)
        bare = _unfenced(code) if listing else without_markers(piece.text)
        says = bool(re.search(r"\w", bare))
        if not valid or not says:
            self._count(uncited=int(says))
            return None
        if self.confidential.is_disclosed_by(code if listing else bare):  # the words of a fence count, too
            self._count(blocked=1)
            return None
        evidence = [_evidence(hit) for number in valid if (hit := self.passage(number)) is not None]
        claim = bare if listing else unmarked(bare)
        judgement = await self.judge.judge(claim, evidence)
        if judgement.verdict == "unverified" and self.confidential.is_hinted_by(code if listing else bare, evidence):
            self._count(blocked=1)
            return None
        if judgement.verdict == "contradicted":
            self._count(contradicted=1)
            return None
        for number in valid:
            self._numbers.setdefault(number, len(self._numbers) + 1)
            self._quotes.setdefault(number, claim)
        self._last_cited = tuple(valid)
        text = without_links(code + "\n" * bool(below) if listing else "") + without_links(
            renumbered(below, self._numbers.get)
        )
        text += UNVERIFIED if judgement.verdict == "unverified" else ""
        numbers = tuple(self._numbers[number] for number in valid)
        statement = Statement(text=text, citations=numbers, verdict=judgement.verdict, support=judgement.support)
        self.statements.append(statement)
        return (piece.lead or (" " if self.statements[1:] else "")) + text

    def _count(self, **more: int) -> None:
        self.removals = replace(
            self.removals, **{name: getattr(self.removals, name) + count for name, count in more.items()}
        )


def _listing(text: str) -> tuple[str, str]:
    """Splits a piece into its listing and the markers below it."""
    closing = max(text.rfind("```"), text.rfind("~~~"))
    end = text.find("\n", closing)
    return (text, "") if end < 0 else (text[:end], text[end:].strip())


def _unfenced(listing: str) -> str:
    """A listing without its fences: it may quote a part of a listing of the book, which has its fences elsewhere."""
    return "\n".join(listing.split("\n")[1:-1])


def _evidence(hit: Hit) -> str:
    """What a sentence is judged by: the passage and the headings above it."""
    return f"{' › '.join(hit.chunk.trail)}\n\n{hit.chunk.text}"
