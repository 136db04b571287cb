"""Checks a finished draft claim by claim. Nothing is taken out: each claim gets a verdict, and the words of a passage
that say it or say otherwise. A claim is judged by the passages that it cites, and if these do not bear it, by the
others. If another passage plainly bears it, the claim is given that one. Where there is a language model, it is asked
once about the claims that the local judge left unconfirmed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lectern.answering.citations import citation
from lectern.domain.evidence import ConfidenceLevel, Hit
from lectern.domain.replies import Citation, Judgement, Removals, Statement
from lectern.grounding.answer_claims import AnswerClaim, claims_of
from lectern.grounding.claims import read_claim
from lectern.grounding.judge import speaks_english, word_coverage
from lectern.grounding.listings import judge_listing
from lectern.ports.answering import Judge, ModelJudge, OpenClaim, Opinion
from lectern.text.markers import cited_numbers, marker_spans
from lectern.text.plain import squeezed

log = logging.getLogger("lectern.judge")
MIN_PLAIN_SUPPORT = 0.7  # from which another passage plainly bears a claim
MAX_UNFIT_SUPPORT = 0.35  # below it the cited passage does not fit; above it the marker stays
MIN_RESTING_SHARE = 0.5  # of the words of an unconfirmed claim that its passages have, if it rests on them
MAX_OPEN_CLAIMS = 40  # that one call asks about
MIN_QUOTE_WORDS = 3  # of a quotation that a language model gives
SAYS_OTHERWISE, SAYS_NOTHING = "The passages say otherwise.", "The passages do not say this."
HIDDEN = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaim:
    """A claim with its verdict."""

    claim: AnswerClaim
    judgement: Judgement
    hit: Hit | None  # the passage with the evidence
    passages: tuple[int, ...]  # numbers of the passages that it cites now
    is_corrected: bool = False  # its marker was replaced by that of the passage that bears it
    rests: bool = False  # supported, or cited and in the words of what it cites


@dataclass(slots=True, kw_only=True)
class Checking:
    """The check of one finished draft."""

    text: str
    shown: Mapping[int, int]  # the number of a passage → the number in the text
    passages: Mapping[int, Hit]  # all that were handed out
    judge: Judge
    model_seconds: Callable[[], float] = lambda: 60.0  # how long a language model may take, asked when it is called
    claims: list[CheckedClaim] = field(default_factory=list)
    tokens: int = 0

    async def run(self, model_judge: ModelJudge | None) -> AsyncGenerator[tuple[int, CheckedClaim], None]:
        """Each claim with its number, as soon as it is judged; again if the language model changes the verdict."""
        for number, claim in enumerate(claims_of(self.text)):
            self.claims.append(await self._check(claim))
            yield number, self.claims[-1]
        if model_judge is not None:
            for number, checked in await self._ask(model_judge):
                self.claims[number] = checked
                yield number, checked

    async def _check(self, claim: AnswerClaim) -> CheckedClaim:
        cited = self._cited(claim)
        if claim.kind == "listing":
            return self._listing(claim, cited)
        judgement = None
        if cited:
            judgement = await self.judge.judge(claim.text, [_text(self.passages[number]) for number in cited])
            if judgement.verdict == "supported":
                return self._checked(claim, judgement, cited, cited)
        numbers = tuple(self.passages)
        of_all = await self.judge.judge(claim.text, [_text(self.passages[number]) for number in numbers])
        if of_all.verdict == "supported" and (not cited or of_all.support >= MIN_PLAIN_SUPPORT):
            unfit = judgement is not None and judgement.support < MAX_UNFIT_SUPPORT
            return self._checked(claim, of_all, numbers, cited, found_elsewhere=unfit)
        if judgement is None:
            return self._checked(claim, of_all, numbers, cited)
        return self._checked(claim, judgement, cited, cited)

    def _listing(self, claim: AnswerClaim, cited: tuple[int, ...]) -> CheckedClaim:
        """A listing is judged by every passage; it may be put together from several."""
        numbers = (*cited, *(number for number in self.passages if number not in cited))
        judgement = judge_listing(claim.bare, [self.passages[number].chunk.text for number in numbers])
        return self._checked(claim, judgement, numbers, cited)

    def _checked(
        self,
        claim: AnswerClaim,
        judgement: Judgement,
        judged: Sequence[int],
        cited: tuple[int, ...],
        *,
        found_elsewhere: bool = False,
    ) -> CheckedClaim:
        place = judgement.passage
        number = judged[place] if place is not None else None
        is_corrected = found_elsewhere and bool(cited) and number is not None
        return CheckedClaim(
            claim=claim,
            judgement=judgement,
            hit=self.passages[number] if number is not None else None,
            passages=(number,) if is_corrected and number is not None else cited,
            is_corrected=is_corrected,
            rests=judgement.verdict == "supported"
            or (judgement.verdict == "unconfirmed" and self._rests(claim, cited)),
        )

    def _rests(self, claim: AnswerClaim, cited: Sequence[int]) -> bool:
        texts = [_text(self.passages[number]) for number in cited]
        if texts and not speaks_english(read_claim(claim.text)):
            return True  # it cannot be compared, so nothing speaks against it
        return bool(texts) and word_coverage(claim.text, texts) >= MIN_RESTING_SHARE

    def _cited(self, claim: AnswerClaim) -> tuple[int, ...]:
        number_of = {shown: number for number, shown in self.shown.items()}
        return tuple(number_of[shown] for shown in claim.citations if shown in number_of)

    async def _ask(self, model_judge: ModelJudge) -> list[tuple[int, CheckedClaim]]:
        """The claims whose verdict a language model changes."""
        unsettled = [
            number
            for number, checked in enumerate(self.claims)
            if checked.judgement.verdict == "unconfirmed" and checked.claim.kind != "listing"
        ][:MAX_OPEN_CLAIMS]
        if not unsettled:
            return []
        claims = [
            OpenClaim(text=self.claims[number].claim.text, passages=self.claims[number].passages)
            for number in unsettled
        ]
        texts = {number: _text(hit) for number, hit in self.passages.items()}
        try:
            async with asyncio.timeout(seconds := self.model_seconds()):
                opinions, usage = await model_judge.opinions(claims, texts)
        except TimeoutError:
            log.warning("the model took over %.1f s to judge; the local verdicts stand", seconds)
            return []
        self.tokens += usage.tokens
        changes = []
        for number, opinion in zip(unsettled, opinions, strict=False):
            if opinion is not None and (changed := await self._follow(self.claims[number], opinion)) is not None:
                changes.append((number, changed))
        return changes

    async def _follow(self, checked: CheckedClaim, opinion: Opinion) -> CheckedClaim | None:
        """The claim as the language model sees it; None if its opinion cannot be followed."""
        quoted = self._quoted(opinion)
        if opinion.verdict == "supported":
            if quoted is None or await self._is_vetoed(checked, quoted):
                return None
            judgement = Judgement(verdict="supported", support=0.75, evidence=opinion.quote.strip())
            return replace(checked, judgement=judgement, hit=self.passages[quoted], rests=True)
        if opinion.verdict == "contradicted":
            if quoted is None:
                return None
            judgement = Judgement(
                verdict="doubtful", support=0.1, evidence=opinion.quote.strip(), reason=SAYS_OTHERWISE
            )
            return replace(checked, judgement=judgement, hit=self.passages[quoted], rests=False)
        judgement = replace(checked.judgement, verdict="doubtful", support=0.15, reason=SAYS_NOTHING)
        return replace(checked, judgement=judgement, rests=False)

    def _quoted(self, opinion: Opinion) -> int | None:
        """The passage that has the model's quotation, word for word."""
        words = squeezed(opinion.quote)
        if len(words.split()) < MIN_QUOTE_WORDS:
            return None
        order = sorted(self.passages, key=lambda number: number != opinion.passage)
        return next((number for number in order if words in squeezed(_text(self.passages[number]))), None)

    async def _is_vetoed(self, checked: CheckedClaim, quoted: int) -> bool:
        """Whether the local rules on numbers, units and names find something in the claim that no passage has."""
        numbers = dict.fromkeys((quoted, *checked.passages))
        return await self.judge.vetoes(checked.claim.text, [_text(self.passages[number]) for number in numbers])


def level_cap(claims: Sequence[CheckedClaim], removals: Removals) -> ConfidenceLevel:
    """The highest level that the claims bear; `insufficient` means that the reply is a refusal. A draft with links of
    its own or with words of the instructions comes from a model that does not keep to its task."""
    doubtful = sum(checked.judgement.verdict == "doubtful" for checked in claims)
    if claims and (doubtful * 2 > len(claims) or not any(checked.rests for checked in claims)):
        return "insufficient"
    if doubtful * 3 >= len(claims):
        return "low" if doubtful else "medium"
    return "medium" if doubtful or removals.links or removals.blocked else "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedText:
    """The text of a reply with its sources and statements."""

    text: str
    citations: tuple[Citation, ...]
    statements: tuple[Statement, ...]
    corrected: int
    hidden: int


def finish(checking: Checking, *, hide_doubtful: bool, before: str = "") -> FinishedText:
    """The text with its final markers, numbered by first mention, after `before`. An answer without any marker gets
    those of the passages that bear its claims."""
    edits = _Edits(checking, hide_doubtful=hide_doubtful)
    text, place = edits.apply(checking.text, len(before))
    statements = [
        _statement(before + text, checked, edits.numbers, place(checked.claim.start), place(checked.claim.end))
        for checked in checking.claims
        if not edits.is_hidden(checked)
    ]
    return FinishedText(
        text=before + text,
        citations=tuple(_citations(edits.numbers, checking)),
        statements=tuple(statements),
        corrected=sum(checked.is_corrected for checked in checking.claims),
        hidden=sum(edits.is_hidden(checked) for checked in checking.claims),
    )


def sent_statement(text: str, checked: CheckedClaim, shown: Mapping[int, int], offset: int) -> Statement:
    """A claim of the text that was sent; `offset` characters were sent before it."""
    start, end = checked.claim.start, checked.claim.end
    statement = _statement(text, checked, shown, start, end)
    return replace(statement, start=start + offset, end=end + offset)


def _statement(text: str, checked: CheckedClaim, numbers: Mapping[int, int], start: int, end: int) -> Statement:
    judgement = checked.judgement
    return Statement(
        text=text[start:end],
        start=start,
        end=end,
        citations=tuple(numbers[number] for number in checked.passages if number in numbers),
        verdict=judgement.verdict,
        support=judgement.support,
        evidence=judgement.evidence if judgement.verdict != "unconfirmed" else "",
        chunk_id=checked.hit.chunk.id if checked.hit is not None and judgement.verdict != "unconfirmed" else None,
        reason=judgement.reason,
    )


def _citations(numbers: Mapping[int, int], checking: Checking) -> list[Citation]:
    """The sources in the order of their numbers, each opened at what it was first cited for."""
    sources = []
    for number, shown in numbers.items():
        hit = checking.passages[number]
        uses = [checked for checked in checking.claims if number in checked.passages]
        first = next((checked for checked in uses if checked.hit is hit and checked.judgement.evidence), None)
        words = first.judgement.evidence if first else uses[0].claim.bare if uses else ""
        sources.append(citation(shown, hit, words))
    return sources


class _Edits:
    """What changes in a text on its last step: markers are renumbered or replaced, and doubtful claims may go."""

    def __init__(self, checking: Checking, *, hide_doubtful: bool) -> None:
        self._hide = hide_doubtful
        self._edits: list[tuple[int, int, str]] = []
        self.numbers: dict[int, int] = {}
        owners = {span: checked for checked in checking.claims for span in checked.claim.markers}
        number_of = {shown: number for number, shown in checking.shown.items()}
        for span in marker_spans(checking.text):
            owner = owners.get(span)
            if owner is not None and self.is_hidden(owner):
                continue  # it goes with its claim
            cited = [number_of[shown] for shown in cited_numbers(checking.text[slice(*span)]) if shown in number_of]
            if owner is not None and owner.is_corrected:
                cited = list(owner.passages) if span == owner.claim.markers[0] else []
            self._edits.append((*span, self._markers(cited)))
        for checked in checking.claims:
            if self.is_hidden(checked):
                self._edits.append((checked.claim.start, checked.claim.end, HIDDEN))
        if not self.numbers:
            self._add_markers(checking)
        self._edits.sort()

    def _add_markers(self, checking: Checking) -> None:
        for place, checked in enumerate(checking.claims):
            if checked.judgement.verdict != "supported" or checked.hit is None:
                continue
            number = next(number for number, hit in checking.passages.items() if hit is checked.hit)
            checking.claims[place] = replace(checked, passages=(number,))
            gap = "\n" if checked.claim.kind == "listing" else " "
            self._edits.append((checked.claim.end, checked.claim.end, gap + self._markers([number])))

    def is_hidden(self, checked: CheckedClaim) -> bool:
        """Whether the operator does not want to show this claim."""
        return self._hide and checked.judgement.verdict == "doubtful"

    def _markers(self, passages: Sequence[int]) -> str:
        numbers = [self.numbers.setdefault(number, len(self.numbers) + 1) for number in passages]
        return "".join(f"[{number}]" for number in dict.fromkeys(numbers))

    def apply(self, text: str, offset: int) -> tuple[str, _Place]:
        """The edited text, and where its positions are now."""
        parts: list[str] = []
        ends: list[tuple[int, int]] = [(0, offset)]
        end = 0
        for start, stop, new in self._edits:
            if start < end:
                continue  # inside a hidden claim
            parts += [text[end:start], new]
            end = stop
            ends.append((stop, offset + sum(map(len, parts))))
        return "".join([*parts, text[end:]]), _Place(ends)


class _Place:
    """Where a position of the old text is in the new one."""

    def __init__(self, ends: Sequence[tuple[int, int]]) -> None:
        self._ends = ends

    def __call__(self, position: int) -> int:
        """The new position."""
        old, new = [pair for pair in self._ends if pair[0] <= position][-1]
        return new + position - old


def _text(hit: Hit) -> str:
    """What a claim is judged by: the passage and the headings above it."""
    return f"{' › '.join(hit.chunk.trail)}\n\n{hit.chunk.text}"
