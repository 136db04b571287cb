"""Checks a finished draft claim by claim. Nothing is taken out: each claim gets a verdict, and the words of a passage
that say it or say otherwise. A claim is judged by the passages that it cites, and if these do not bear it, by the
others. If another passage plainly bears it, the claim is given that one; if all markers of a draft are off by one, all
claims are given the neighbours. Where there is a language model, it is asked once about the claims on which the local
judge has nothing certain."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lectern.answering.citations import citation
from lectern.domain.evidence import ConfidenceLevel, Hit
from lectern.domain.replies import Citation, Judgement, Removals, Statement
from lectern.grounding.answer_claims import AnswerClaim, claims_of
from lectern.grounding.claims import read_claim
from lectern.grounding.foreign import is_foreign, names_unknown_code, without_known_versions
from lectern.grounding.judge import QUOTED, book_words, speaks_english, word_coverage
from lectern.grounding.listings import judge_listing
from lectern.grounding.rows import judge_row
from lectern.ports.answering import Judge, ModelJudge, OpenClaim, Opinion
from lectern.text.blocks import blocks_of
from lectern.text.markers import cited_numbers, marker_spans
from lectern.text.plain import squeezed

log = logging.getLogger("lectern.judge")
MAX_UNFIT_SUPPORT = 0.35  # below it the cited passage does not fit a claim; above it the marker stays
MIN_SHIFTED_CLAIMS = 3  # claims with markers
MIN_SHIFT_GAIN = 0.15  # how much more of their words the neighbours of the cited passages have
MAX_OPEN_CLAIMS = 40  # that one call asks about
MIN_QUOTE_WORDS = 3  # of a quotation that a language model gives
UNKNOWN_NAME = "The passages do not have this name."
OTHER_WORDS = "The passages have hardly a word of this."
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
    is_grounded: bool = False  # supported, or cited and nothing concrete is against it
    is_comparable: bool = True  # the judge can read its language


@dataclass(slots=True, kw_only=True)
class Checking:
    """The check of one finished draft."""

    text: str
    reader_numbers: Mapping[int, int]  # the number of a passage → the number in the text
    passages: Mapping[int, Hit]  # all that were handed out
    judge: Judge
    question: str = ""
    is_cut: bool = False  # the provider ended the text early
    model_seconds: Callable[[], float] = lambda: 60.0  # how long a language model may take, asked when it is called
    claims: list[CheckedClaim] = field(default_factory=list)
    tokens: int = 0
    _cited_by_draft: tuple[int, ...] = ()  # the passages that any claim cites
    _shift: int = 0  # between the numbers that the model wrote and those that it meant

    async def run(self, model_judge: ModelJudge | None) -> AsyncGenerator[tuple[int, CheckedClaim], None]:
        """Each claim with its number, as soon as it is judged; again if the language model changes the verdict."""
        claims = await asyncio.to_thread(claims_of, self.text)  # a long draft takes a while
        self._shift = self._shared_shift(claims)
        self._cited_by_draft = tuple(dict.fromkeys(number for claim in claims for number in self._cited(claim)))
        for number, claim in enumerate(claims):
            checked = await self._check(claim)
            if self.is_cut and claim.end == len(self.text) and checked.judgement.verdict == "doubtful":
                checked = replace(checked, judgement=Judgement(verdict="unconfirmed", support=0.0))  # half a sentence
            self.claims.append(checked)
            yield number, checked
            await asyncio.sleep(0)  # others are waiting, and there may be a thousand claims
        if model_judge is not None:
            for number, checked in await self._ask(model_judge):
                self.claims[number] = checked
                yield number, checked

    async def _check(self, claim: AnswerClaim) -> CheckedClaim:
        cited = self._cited(claim)
        if claim.kind == "listing":
            return self._listing(claim, cited)
        if claim.kind == "row":
            return await self._row(claim, cited)
        return await self._statement(claim, cited)

    async def _statement(self, claim: AnswerClaim, cited: tuple[int, ...]) -> CheckedClaim:
        checked = await self._compared(claim, cited)
        if checked.judgement.verdict == "doubtful" and (claim.lead_is_claim or claim.kind == "row"):
            alone = await self._compared(replace(claim, text=claim.bare), cited)
            if alone.judgement.verdict != "doubtful":  # what is against it is in its lead or head
                checked = replace(alone, claim=claim, judgement=replace(alone.judgement, verdict="unconfirmed"))
        if checked.judgement.verdict == "supported":
            return checked
        if names_unknown_code(claim.text, [self.question, *map(_text, self.passages.values())]):
            judgement = Judgement(verdict="doubtful", support=0.0, reason=UNKNOWN_NAME)
            return self._checked(claim, judgement, cited, cited)
        if (
            checked.judgement.verdict == "unconfirmed"
            and checked.is_comparable
            and is_foreign(claim.text, checked.judgement.support, self._read_for_draft(), self.question)
        ):
            judgement = Judgement(verdict="doubtful", support=0.0, reason=OTHER_WORDS, is_soft=True)
            return self._checked(claim, judgement, cited, cited)
        return checked

    def _read_for_draft(self) -> list[str]:
        """The passages that any claim cites: a claim in free words takes some from others than its own."""
        return [_text(self.passages[number]) for number in self._cited_by_draft or self.passages]

    async def _compared(self, claim: AnswerClaim, cited: tuple[int, ...]) -> CheckedClaim:
        judgement, text = (
            None,
            without_known_versions(
                claim.text, [_text(self.passages[number]) for number in cited], map(_text, self.passages.values())
            ),
        )
        if cited:
            judgement = await self.judge.judge(text, [_text(self.passages[number]) for number in cited])
            if judgement.verdict == "supported":
                return self._checked(claim, judgement, cited, cited)
        numbers = tuple(self.passages)
        of_all = await self.judge.judge(text, [_text(self.passages[number]) for number in numbers])
        if of_all.verdict == "supported":
            unfit = judgement is not None and judgement.support < MAX_UNFIT_SUPPORT
            if not unfit or of_all.support == QUOTED:  # other words may be about something else
                return self._checked(claim, of_all, numbers, cited, found_elsewhere=unfit)
            if judgement is not None and judgement.is_soft:
                judgement = replace(judgement, verdict="unconfirmed")
        if judgement is None:
            return self._checked(claim, of_all, numbers, cited)
        return self._checked(claim, judgement, cited, cited)

    def _listing(self, claim: AnswerClaim, cited: tuple[int, ...]) -> CheckedClaim:
        """A listing is judged by every passage; it may be put together from several."""
        numbers = (*cited, *(number for number in self.passages if number not in cited))
        judgement = judge_listing(claim.bare, [self.passages[number].chunk.text for number in numbers])
        return self._checked(claim, judgement, numbers, cited)

    async def _row(self, claim: AnswerClaim, cited: tuple[int, ...]) -> CheckedClaim:
        """A row is looked up in the tables of all passages, and else read like a sentence."""
        numbers = (*cited, *(number for number in self.passages if number not in cited))
        judgement = judge_row(claim.cells, [self.passages[number].chunk.text for number in numbers])
        if judgement is not None and judgement.verdict != "unconfirmed":
            is_elsewhere = judgement.passage is not None and numbers[judgement.passage] not in cited
            found_elsewhere = is_elsewhere and judgement.verdict == "supported"
            return self._checked(claim, judgement, numbers, cited, found_elsewhere=found_elsewhere)
        checked = await self._statement(claim, cited)
        if judgement is not None and checked.judgement.verdict == "doubtful":
            return self._checked(claim, judgement, numbers, cited)
        return checked

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
            is_grounded=judgement.verdict == "supported" or (bool(cited) and not _is_refuted(judgement)),
            is_comparable=claim.kind == "listing" or speaks_english(read_claim(claim.text)),
        )

    def _cited(self, claim: AnswerClaim) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self.passages_of(claim.citations)))

    def passages_of(self, markers: Sequence[int]) -> list[int]:
        """The numbers of the passages that these markers of the text mean."""
        numbers = [self._marked[marker] for marker in markers if marker in self._marked]
        return [number + self._shift if number + self._shift in self.passages else number for number in numbers]

    @property
    def _marked(self) -> dict[int, int]:
        return {marker: number for number, marker in self.reader_numbers.items()}

    def is_shifted(self, claim: AnswerClaim) -> bool:
        """Whether a claim has other passages than its markers say."""
        return bool(self._shift) and self._cited(claim) != tuple(self._marked.get(marker) for marker in claim.citations)

    def _shared_shift(self, claims: Sequence[AnswerClaim]) -> int:
        """1 or -1 if all markers of the draft are off by one, as of a model that counts from 0: the neighbours of the
        cited passages then have far more of the claims' words."""
        marked = self._marked
        cited = [(claim.bare, [marked[marker] for marker in claim.citations if marker in marked]) for claim in claims]
        cited = [(text, numbers) for text, numbers in cited if numbers]
        if len(cited) < MIN_SHIFTED_CLAIMS:
            return 0

        def shared_words(shift: int) -> float:
            texts = [
                [_text(self.passages[number + shift]) for number in numbers if number + shift in self.passages]
                for _, numbers in cited
            ]
            return sum(word_coverage(text, passages) for (text, _), passages in zip(cited, texts, strict=True)) / len(
                cited
            )

        best = max((1, -1), key=shared_words)
        return best if shared_words(best) > shared_words(0) + MIN_SHIFT_GAIN else 0

    async def _ask(self, model_judge: ModelJudge) -> list[tuple[int, CheckedClaim]]:
        """The claims whose verdict a language model changes."""
        unsettled = [
            number
            for number, checked in enumerate(self.claims)
            if _is_open(checked.judgement) and checked.claim.kind != "listing"
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
        words = book_words(opinion.quote, self.passages[quoted].chunk.text) if quoted is not None else ""
        if opinion.verdict == "supported":
            if quoted is None or await self._is_vetoed(checked, quoted):
                return None
            judgement = Judgement(verdict="supported", support=0.75, evidence=words)
            unfit = self._is_unfit(checked, quoted)
            return replace(
                checked,
                judgement=judgement,
                hit=self.passages[quoted],
                passages=(quoted,) if unfit and checked.passages else checked.passages,
                is_corrected=unfit and bool(checked.passages),
                is_grounded=True,
            )
        if opinion.verdict == "contradicted":
            if quoted is None:
                return None
            judgement = Judgement(verdict="doubtful", support=0.1, evidence=words, reason=SAYS_OTHERWISE)
            return replace(checked, judgement=judgement, hit=self.passages[quoted], is_grounded=False)
        judgement = replace(checked.judgement, verdict="doubtful", support=0.15, reason=SAYS_NOTHING, is_soft=False)
        return replace(checked, judgement=judgement, is_grounded=False)

    def _is_unfit(self, checked: CheckedClaim, quoted: int) -> bool:
        """Whether the quoted passage bears a claim plainly better than those that it cites."""
        if quoted in checked.passages or checked.judgement.support >= MAX_UNFIT_SUPPORT:
            return False
        cited = [_text(self.passages[number]) for number in checked.passages]
        text = checked.claim.text
        return word_coverage(text, [_text(self.passages[quoted])]) > word_coverage(text, cited)

    def _quoted(self, opinion: Opinion) -> int | None:
        """The passage that has the model's quotation, word for word. Headings and questions say nothing. Only the
        passage's own text is shown: a model may have put something between its words."""
        words = squeezed(opinion.quote)
        if len(words.split()) < MIN_QUOTE_WORDS or opinion.quote.rstrip().endswith("?"):
            return None
        order = sorted(self.passages, key=lambda number: number != opinion.passage)
        return next((number for number in order if words in _prose(self.passages[number])), None)

    async def _is_vetoed(self, checked: CheckedClaim, quoted: int) -> bool:
        """Whether the local rules on numbers, units and names find something in the claim that no passage has."""
        numbers = dict.fromkeys((quoted, *checked.passages))
        return await self.judge.vetoes(checked.claim.text, [_text(self.passages[number]) for number in numbers])


def _is_open(judgement: Judgement) -> bool:
    """Whether the local judge has nothing certain to say."""
    return judgement.verdict == "unconfirmed" or judgement.is_soft


def _is_refuted(judgement: Judgement) -> bool:
    """Whether something concrete is against a claim: a number, unit, name or negation, or a language model."""
    return judgement.verdict == "doubtful" and not judgement.is_soft


def level_cap(claims: Sequence[CheckedClaim], removals: Removals, *, is_cited: bool = False) -> ConfidenceLevel:
    """The highest level that the claims bear; `insufficient` means that the reply is a refusal. A draft with links of
    its own or with sentences of the instructions comes from a model that does not keep to its task. What the judge
    cannot read, what does not sound like the book, and an answer of which no claim is confirmed, is trusted less. Only
    concrete evidence withdraws a draft that cites passages: faithful answers in free words do not sound like the book
    either."""
    refuted = sum(_is_refuted(checked.judgement) for checked in claims)
    if claims and (refuted * 2 > len(claims) or not (is_cited or any(checked.is_grounded for checked in claims))):
        return "insufficient"
    doubtful = sum(checked.judgement.verdict == "doubtful" for checked in claims)
    if doubtful * 3 >= len(claims):
        return "low" if doubtful else "medium"
    verdicts = {checked.judgement.verdict for checked in claims}
    unread = any(not checked.is_comparable and checked.judgement.verdict != "supported" for checked in claims)
    hardly_borne = any(checked.judgement.support < MAX_UNFIT_SUPPORT for checked in claims)
    is_plain = not (doubtful or unread or hardly_borne or removals.links or removals.blocked)
    return "high" if is_plain and "supported" in verdicts else "medium"


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
        corrected=sum(checked.is_corrected or checking.is_shifted(checked.claim) for checked in checking.claims),
        hidden=sum(edits.is_hidden(checked) for checked in checking.claims),
    )


def sent_statement(text: str, checked: CheckedClaim, reader_numbers: Mapping[int, int], offset: int) -> Statement:
    """A claim of the text that was sent; `offset` characters were sent before it."""
    start, end = checked.claim.start, checked.claim.end
    statement = _statement(text, checked, reader_numbers, start, end)
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
    for number, reader_number in numbers.items():
        hit = checking.passages[number]
        uses = [checked for checked in checking.claims if number in checked.passages]
        first = next((checked for checked in uses if checked.hit is hit and checked.judgement.evidence), None)
        words = first.judgement.evidence if first else uses[0].claim.bare if uses else ""
        sources.append(citation(reader_number, hit, words))
    return sources


class _Edits:
    """What changes in a text on its last step: markers are renumbered or replaced, and doubtful claims may go."""

    def __init__(self, checking: Checking, *, hide_doubtful: bool) -> None:
        self._hide = hide_doubtful
        self._edits: list[tuple[int, int, str]] = []
        self.numbers: dict[int, int] = {}
        owners = {span: checked for checked in checking.claims for span in checked.claim.markers}
        for span in marker_spans(checking.text):
            owner = owners.get(span)
            if owner is not None and self.is_hidden(owner):
                continue  # it goes with its claim
            markers = cited_numbers(checking.text[slice(*span)])
            cited = checking.passages_of(markers)
            if owner is not None and owner.is_corrected:
                cited = list(owner.passages) if span == owner.claim.markers[0] else []
            markers_text = self._markers(cited)
            start = span[0] if markers_text else _gap_start(checking.text, span[0])
            self._edits.append((start, span[1], markers_text))
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
            end, gap = _marker_place(checking.text, checked.claim)
            self._edits.append((end, end, gap + self._markers([number])))

    def is_hidden(self, checked: CheckedClaim) -> bool:
        """Whether the operator does not want to show this claim."""
        return self._hide and checked.judgement.verdict == "doubtful"

    def _markers(self, passages: Sequence[int]) -> str:
        numbers = [self.numbers.setdefault(number, len(self.numbers) + 1) for number in passages]
        return "".join(f"[{number}]" for number in dict.fromkeys(numbers))

    def apply(self, text: str, offset: int) -> tuple[str, _Places]:
        """The edited text, and where its positions are now."""
        parts: list[str] = []
        places = _Places([0], [offset])
        end = 0
        for start, stop, new in self._edits:
            if start < end:
                continue  # inside a hidden claim
            parts += [text[end:start], new]
            places.add(stop, start - end + len(new) - (stop - end))
            end = stop
        return "".join([*parts, text[end:]]), places


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the positions of an edited text are now: after each edit they are moved by a number of characters."""

    _ends: list[int]
    _moved: list[int]

    def add(self, end: int, more: int) -> None:
        """From here on, positions are moved by so many characters more."""
        self._ends.append(end)
        self._moved.append(self._moved[-1] + more)

    def __call__(self, position: int) -> int:
        """The new position."""
        return position + self._moved[bisect_right(self._ends, position) - 1]


def _gap_start(text: str, start: int) -> int:
    """Where the blanks before a position begin: a marker that goes takes them along."""
    while start and text[start - 1] in " \t":
        start -= 1
    return start


def _marker_place(text: str, claim: AnswerClaim) -> tuple[int, str]:
    """Where a claim's marker is added, and what stands before it: inside the last cell of a row, below a listing with
    the listing's indentation, else behind the claim."""
    if claim.kind == "listing":
        line = text[text.rfind("\n", 0, claim.start) + 1 : claim.start]
        return claim.end, "\n" + " " * len(line)
    row = text[text.rfind("\n", 0, claim.end) + 1 : claim.end].rstrip()
    if claim.kind == "row" and row.endswith("|"):
        cut = claim.end - (len(text[: claim.end]) - len(text[: claim.end].rstrip())) - 1
        return _gap_start(text, cut), " "
    return claim.end, " "


def _prose(hit: Hit) -> str:
    """The words of a passage without its headings, as quotations are compared."""
    return squeezed("\n".join(block.text for block in blocks_of(hit.chunk.text) if block.kind != "heading"))


def _text(hit: Hit) -> str:
    """What a claim is judged by: the passage and the headings above it."""
    return f"{' › '.join(hit.chunk.trail)}\n\n{hit.chunk.text}"
