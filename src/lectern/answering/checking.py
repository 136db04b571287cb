"""Every sentence of a draft is checked when it is complete, and only then shown: it must cite a passage that was handed
out in this turn, give nothing away, and not be denied by what it cites. Sentences that nothing bears out are marked,
and held back until one that is supported has come; where none comes, nothing was said."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lectern.answering.citations import citation
from lectern.answering.outgoing import Confidential, unlinked
from lectern.domain.evidence import Hit
from lectern.domain.replies import Citation, Removed, Statement
from lectern.ports.answering import Judge
from lectern.text.markers import numbers_in, renumbered, without_markers
from lectern.text.plain import unmarked
from lectern.text.sentence_stream import DraftSentence, SentenceStream

UNVERIFIED = " (unverified)"

Passages = Callable[[int], Hit | None]  # by the number they were handed out under


@dataclass(slots=True)
class Checker:
    """Checks one draft, sentence by sentence."""

    judge: Judge
    passage: Passages
    confidential: Confidential
    statements: list[Statement] = field(default_factory=list)
    removed: Removed = field(default_factory=Removed)
    _stream: SentenceStream = field(default_factory=SentenceStream)
    _numbers: dict[int, int] = field(default_factory=dict)  # as handed out → as shown, by first mention
    _quotes: dict[int, str] = field(default_factory=dict)  # what each was cited for first
    _held: list[str] = field(default_factory=list)
    _text: str = ""
    _last: tuple[int, ...] = ()  # what the sentence before cited: a listing below it rests on the same

    @property
    def text(self) -> str:
        """All that may be shown, markers renumbered."""
        return self._text.strip()

    @property
    def supported(self) -> bool:
        """Whether anything was said that its sources bear out."""
        return any(one.verdict == "supported" for one in self.statements)

    async def feed(self, text: str) -> str:
        """Take in a piece of the draft; what may be shown now."""
        return await self._check(self._stream.feed(text))

    async def finish(self) -> str:
        """Take in the end of the draft; the last that may be shown."""
        return await self._check(self._stream.flush())

    def citations(self) -> tuple[Citation, ...]:
        """The sources, by first mention."""
        found = []
        for handed, shown in self._numbers.items():
            hit = self.passage(handed)
            assert hit is not None  # only numbers that were handed out are kept
            found.append(citation(shown, hit, self._quotes[handed]))
        return tuple(found)

    async def _check(self, pieces: Sequence[DraftSentence]) -> str:
        for piece in pieces:
            if (shown := await self._sentence(piece)) is not None:
                self._held.append(shown)
        if not self.supported:
            return ""
        out = "".join(self._held)
        self._held.clear()
        out = out if self._text else out.lstrip()
        self._text += out
        return out

    async def _sentence(self, piece: DraftSentence) -> str | None:
        """A sentence as it may be shown, or None."""
        listing = piece.text.startswith(("```", "~~~"))
        code, below = _listing(piece.text) if listing else ("", piece.text)
        mentioned = numbers_in(below)  # in a listing `x[0]` cites nothing
        valid = [number for number in mentioned if self.passage(number) is not None]
        if len(valid) < len(mentioned):
            self._count(invented_citations=len(mentioned) - len(valid))
        if not valid and listing:
            valid = list(self._last)
        bare = _unfenced(code) if listing else without_markers(piece.text)
        says = bool(re.search(r"\w", bare))
        if not valid or not says:
            self._count(uncited=int(says))
            return None
        if self.confidential.given_away_by(code if listing else bare):  # a fence has words of its own
            self._count(blocked=1)
            return None
        evidence = [_evidence(hit) for number in valid if (hit := self.passage(number)) is not None]
        said = bare if listing else unmarked(bare)
        judgement = await self.judge.judge(said, evidence)
        if judgement.verdict == "unverified" and self.confidential.hinted_at_by(code if listing else bare, evidence):
            self._count(blocked=1)
            return None
        if judgement.verdict == "contradicted":
            self._count(contradicted=1)
            return None
        for number in valid:
            self._numbers.setdefault(number, len(self._numbers) + 1)
            self._quotes.setdefault(number, said)
        self._last = tuple(valid)
        text = unlinked(code + "\n" * bool(below) if listing else "") + unlinked(renumbered(below, self._numbers.get))
        text += UNVERIFIED if judgement.verdict == "unverified" else ""
        numbers = tuple(self._numbers[number] for number in valid)
        statement = Statement(text=text, citations=numbers, verdict=judgement.verdict, support=judgement.support)
        self.statements.append(statement)
        return (piece.lead or (" " if self.statements[1:] else "")) + text

    def _count(self, **more: int) -> None:
        self.removed = replace(
            self.removed, **{name: getattr(self.removed, name) + count for name, count in more.items()}
        )


def _listing(text: str) -> tuple[str, str]:
    """A listing, and the markers below it."""
    closing = max(text.rfind("```"), text.rfind("~~~"))
    end = text.find("\n", closing)
    return (text, "") if end < 0 else (text[:end], text[end:].strip())


def _unfenced(listing: str) -> str:
    """A listing's lines: a part of one of the book's stands there, but not between these fences."""
    return "\n".join(listing.split("\n")[1:-1])


def _evidence(hit: Hit) -> str:
    """What a sentence may rest on: the passage, and the headings it stands under."""
    return f"{' › '.join(hit.chunk.trail)}\n\n{hit.chunk.text}"
