"""The answerer that needs no key: it quotes the best pieces of the book, each with a citation, and adds no words.
Passages are ranked and quoted, never obeyed: an instruction planted in a lesson is treated as any other sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import dedent

from lectern.answering.instructions import NOT_COVERED
from lectern.answering.offline.ranking import Candidate, Shortlist, Signals, cosine, fitted_weights, probabilities
from lectern.confidence.answerability import CANNOT_ANSWER, locate
from lectern.confidence.requirements import asks_for_code, names_identifier
from lectern.ports.answering import AnswerLocator, Passage
from lectern.ports.index import Embedder
from lectern.text.markers import has_marker
from lectern.text.pieces import ends_sentence
from lectern.text.quotes import Quote, quotes_of
from lectern.text.sentence_stream import SentenceStream
from lectern.text.words import stems

MODEL_NAME = "offline-extractive"
MAX_REPLY_WORDS = 90  # of a reply with more than one quote; the average stays far below
MAX_QUOTES = 3
MAX_LISTINGS = 2
MIN_FURTHER_PROBABILITY = 0.05  # of a quote after the first
MIN_PROBABILITY_PER_WORD = 0.002  # of a quote after the first; fitted so that replies average under 60 words
SHORTLIST_SIZE = 24  # candidates that are embedded: more cost time and find no more answers
SHORTLIST_BY_ODDS = 8  # of these, so many for their odds to answer, the others for the words that they share
MIN_RELATED_COSINE = 0.2  # a quote below it that shares no word with the question has nothing to do with it
REPETITION_SHARE = 0.8  # of words in common, from which a second quote says nothing new
MIN_CELLS_FOR_HEAD = 3  # a row of so many cells is not understood without the head of its table

_REFERENCE = re.compile(  # says where, not what: `See [lesson 1.2](…).`
    r"\W*(?:see|compare|cf)\b\.?\s*(?:also\s+)?(?:\[[^\]]*\]\([^)]*\)|(?:\d\.\d|[^.]){1,50})\W*", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A candidate for the reply, with the text that must come before it."""

    candidate: Candidate
    before: str = ""

    @property
    def words(self) -> int:
        return len(self.before.split()) + self.candidate.quote.words


class OfflineWriter:
    """Quotes the pieces that most likely answer."""

    model = MODEL_NAME

    def __init__(self, embedder: Embedder, locator: AnswerLocator) -> None:
        self._embedder = embedder
        self._locator = locator

    async def write(self, question: str, passages: Sequence[Passage]) -> str:
        """The best quotes with their passages' numbers, or `NOT_COVERED` if no quote is related to the question."""
        shortlist = await self.shortlist(question, passages)
        if not shortlist.candidates:
            return NOT_COVERED
        signals = await self.signals(shortlist)
        chances = probabilities(signals, fitted_weights())
        ranked = sorted(range(len(chances)), key=lambda place: (-chances[place], place))
        if _is_unrelated(signals[ranked[0]]):
            return NOT_COVERED
        return _render(_choose([(shortlist.candidates[place], chances[place]) for place in ranked], shortlist))

    async def shortlist(self, question: str, passages: Sequence[Passage]) -> Shortlist:
        """The question with the quotes that share most with it or seem to answer it, in their order."""
        odds = await locate(self._locator, question, passages)
        everything = Shortlist(question, _candidates(question, passages, odds))
        candidates = everything.candidates
        if len(candidates) <= SHORTLIST_SIZE:
            return everything
        shared = everything.overlaps()
        by_words = sorted(range(len(candidates)), key=lambda place: (-shared[place], place))
        by_odds = sorted(by_words, key=lambda place: -candidates[place].odds)[:SHORTLIST_BY_ODDS]
        best = list(dict.fromkeys((*by_odds, *by_words)))[:SHORTLIST_SIZE]
        return Shortlist(question, [candidates[place] for place in sorted(best)])

    async def signals(self, shortlist: Shortlist) -> list[Signals]:
        """The signals of each candidate."""
        (target,) = await self._embedder.embed([shortlist.question], purpose="question")
        windows = [self._embedder.passages((), candidate.context)[0] for candidate in shortlist.candidates]
        vectors = await self._embedder.embed(windows, purpose="passage")
        return shortlist.signals([cosine(target, vector) for vector in vectors])


def _candidates(question: str, passages: Sequence[Passage], odds: Sequence[Sequence[float]]) -> list[Candidate]:
    """All quotes that may answer; code only if the question asks for code or names an identifier."""
    code = asks_for_code(question) or names_identifier(question)
    return [
        Candidate(
            # footnotes of the book would look like our citations
            quote=replace(quote, before="")
            if has_marker(quote.before) or _REFERENCE.fullmatch(quote.before)
            else quote,
            number=passage.number,
            heading=quote.heading or passage.heading,
            similarity=passage.similarity,
            odds=quote_odds,
        )
        for passage, passage_odds in zip(passages, odds, strict=True)
        for quote, quote_odds in zip(quotes_of(passage.text), passage_odds, strict=True)
        if quote_odds > CANNOT_ANSWER
        and (code or quote.kind != "code")
        and not has_marker(quote.text)
        and not _REFERENCE.fullmatch(quote.text)
    ]


def _is_unrelated(signals: Signals) -> bool:
    return signals["context"] == 0 and signals["shared_loosely"] == 0 and signals["cosine"] < MIN_RELATED_COSINE


def _choose(ranked: Sequence[tuple[Candidate, float]], shortlist: Shortlist) -> list[_Choice]:
    """The most likely quote, then further quotes that are likely enough for their length."""
    choices: list[_Choice] = []
    for candidate, chance in ranked:
        quote = candidate.quote
        words_left = MAX_REPLY_WORDS - sum(choice.words for choice in choices)
        worthwhile = chance >= max(MIN_FURTHER_PROBABILITY, MIN_PROBABILITY_PER_WORD * quote.words)
        if choices and (not worthwhile or quote.words > words_left or _repeats(quote, choices)):
            continue
        if quote.kind == "code" and sum(choice.candidate.quote.kind == "code" for choice in choices) == MAX_LISTINGS:
            continue
        before = _needed_before(quote, shortlist)
        if any(
            choice.candidate.number == candidate.number and before in (choice.candidate.quote.text, choice.before)
            for choice in choices
        ):
            before = ""
        choice = _Choice(candidate=candidate, before=before)
        if choice.words > words_left:
            if choices:  # it is left out, because it cannot be understood without the sentence before it
                continue
            choice = _Choice(candidate=candidate)
        choices.append(choice)
        if len(choices) == MAX_QUOTES:
            break
    first, *further = choices
    return [first, *sorted(further, key=lambda choice: (choice.candidate.number, choice.candidate.quote.place))]


def _needed_before(quote: Quote, shortlist: Shortlist) -> str:
    """The text that must be quoted before a quote, if any."""
    match quote.kind:
        case "sentence":
            return quote.before if quote.leans else ""
        case "item":
            introduces = quote.before.endswith(":") and shortlist.adds(quote.before, quote.text)
            return quote.before if quote.leans or introduces else ""
        case "row":
            return quote.before if quote.text.count("|") >= MIN_CELLS_FOR_HEAD - 1 else ""
        case "code":
            return quote.before
        case "list":
            return ""


def _repeats(quote: Quote, choices: Sequence[_Choice]) -> bool:
    """Whether the reply already says what a quote says."""
    words = stems(quote.text)
    texts = [text for choice in choices for text in (choice.candidate.quote.text, choice.before) if text]
    return any(
        len(words & quote_words) >= REPETITION_SHARE * min(len(words), len(quote_words))
        for quote_words in map(stems, texts)
    )


def _render(choices: Sequence[_Choice]) -> str:
    """The reply: sentences form paragraphs, everything else is a block; each piece has its number."""
    blocks: list[str] = []
    running = False
    for choice in choices:
        quote, mark = choice.candidate.quote, f"[{choice.candidate.number}]"
        prose = [choice.before] if choice.before and quote.kind != "row" else []
        prose += [quote.text] if quote.kind in ("sentence", "item") else []
        for text in prose:
            blocks[-1:] = (
                [f"{blocks[-1]}{_with_number(text, mark)}"] if running else [*blocks[-1:], _with_number(text, mark)]
            )
            running = True
        if quote.kind not in ("sentence", "item"):
            blocks.append(_block(choice, mark))
            running = False
    return "\n\n".join(block.strip() for block in blocks)


def _with_number(text: str, mark: str) -> str:
    """Prose with a number after each sentence, because each sentence is checked by itself."""
    stream = SentenceStream()
    pieces = [piece.text for piece in (*stream.feed(text), *stream.flush())]
    # What ends in no full stop, such as a lead-in, ends its line.
    return "".join(f"{piece} {mark}{' ' if ends_sentence(piece) else chr(10)}" for piece in pieces)


def _block(choice: _Choice, mark: str) -> str:
    """A listing, a list or a row as a block with its number."""
    quote = choice.candidate.quote
    if quote.kind == "code":
        fence = "~~~" if "```" in quote.text else "```"
        return f"{fence}{quote.language}\n{dedent(quote.text)}\n{fence}\n{mark}"
    if quote.kind == "list":
        lead_in, *items = (_with_number(part, mark).strip() for part in quote.parts)
        return "\n\n".join((lead_in, "\n".join(items)))
    return "\n\n".join(_with_number(row, mark).strip() for row in (choice.before, quote.text) if row)
