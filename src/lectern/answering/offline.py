"""The model without a key: it answers with the book's own best pieces, each cited, and adds no word of its own. What
passages say is never obeyed, only ranked and quoted, so an instruction planted in a lesson is one more sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import dedent

from lectern.answering.definitions import defines, term_asked
from lectern.answering.finding import found_in, introduced
from lectern.answering.naming import Meant, Siblings
from lectern.answering.question_types import asked_for, must_hold
from lectern.answering.quotes import Quote, quotes_of
from lectern.answering.ranking import Found, Question, Signals, cosine, learnt, shares
from lectern.answering.respelling import respelt
from lectern.ports.answering import Finder, Passage
from lectern.ports.index import Embedder
from lectern.text.markers import has_marker
from lectern.text.sentence_stream import SentenceStream
from lectern.text.words import stems

MODEL_NAME = "offline-extractive"
MOST_WORDS = 90  # of a reply that is more than one quote; the average stays far below
MOST_QUOTES = 3
MOST_LISTINGS = 2
LEAST = 0.05  # the chance to answer that a further quote must have
WORTH = 0.002  # the chance to answer that one more word must bring; fitted so that replies average under 60 words
EMBEDDED = 24  # quotes that are looked at closely: more cost time and find no more answers
LIKELY = 8  # of these, so many for what the finder says, the others for the words that they share
UNRELATED = 0.2  # cosine: a quote below it that shares no word with the question has nothing to do with it
REPEATS = 0.8  # share of words in common from which a second quote says nothing new
DEFINING = ("sentence", "item")  # kinds of quotes that can say what a thing is
HEADED = 3  # cells from which a row needs the head of its table to be understood

_ENDED = re.compile(r"[.!?…。！？۔][\"'”’)*_`]*$")
_REFERS = re.compile(  # says where, not what: `See [lesson 1.2](…).`
    r"\W*(?:see|compare|cf)\b\.?\s*(?:also\s+)?(?:\[[^\]]*\]\([^)]*\)|(?:\d\.\d|[^.]){1,50})\W*", re.IGNORECASE
)
_IDENTIFIER = re.compile(r"\w[_/]\w|\w\(|\w\.\w|(?:^|\s)--?\w")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """A quote for the reply, with what has to stand before it."""

    found: Found
    before: str = ""

    @property
    def words(self) -> int:
        return len(self.before.split()) + self.found.quote.words


class OfflineWriter:
    """Quotes what most likely answers."""

    model = MODEL_NAME

    def __init__(self, embedder: Embedder, finder: Finder) -> None:
        self._embedder = embedder
        self._finder = finder

    async def write(self, question: str, passages: Sequence[Passage]) -> str:
        """The best quotes with their passages' numbers, or nothing where none has to do with the question."""
        asked = await self.shortlist(question, passages)
        if not asked.found:
            return ""
        found, signals = asked.found, await self.signals(asked)
        chances = shares(signals, learnt())
        term = term_asked(question)
        said = [term is not None and one.quote.kind in DEFINING and defines(one.quote.text, term) for one in found]
        ranked = sorted(range(len(found)), key=lambda place: (not said[place], -chances[place], place))
        if _unrelated(signals[ranked[0]]):
            return ""
        return _rendered(_choose([(found[place], chances[place]) for place in ranked], asked))

    async def shortlist(self, question: str, passages: Sequence[Passage]) -> Question:
        """The question with the quotes that share most with it or seem to answer it, in their order."""
        asked = respelt(question, [one.text for one in passages])
        odds = await found_in(self._finder, asked, [(one.heading, one.text) for one in passages])
        every = Question(question, _candidates(question, passages, odds))
        if len(every.found) <= EMBEDDED:
            return every
        shared = every.overlaps()
        near = sorted(range(len(every.found)), key=lambda place: (-shared[place], place))
        likely = sorted(near, key=lambda place: -every.found[place].odds)[:LIKELY]
        best = dict.fromkeys((*likely, *near))
        return Question(question, [every.found[place] for place in sorted([*best][:EMBEDDED])])

    async def signals(self, asked: Question) -> list[Signals]:
        """What speaks for each quote of the shortlist."""
        (wanted,) = await self._embedder.embed([asked.text], purpose="question")
        windows = [self._embedder.passages((), one.context)[0] for one in asked.found]
        vectors = await self._embedder.embed(windows, purpose="passage")
        return asked.signals([cosine(wanted, vector) for vector in vectors])


def _candidates(question: str, passages: Sequence[Passage], odds: Sequence[Sequence[float]]) -> list[Found]:
    """All that could be quoted; code only where it was asked for, by kind or by name."""
    code = asked_for(question) == "code" or _IDENTIFIER.search(question) is not None
    needed, meant = must_hold(question), Meant(question)
    siblings = Siblings(question, [title for one in passages for title in (one.page, one.heading)])

    def fits(quote: Quote, around: Sequence[str]) -> bool:
        """Not about another thing; and where the question asks for a measure, one of the thing that it names."""
        told = f"{quote.before} {introduced(quote)}" if quote.kind == "row" else quote.text
        return not meant.another(around) and (needed is None or (needed(told) and meant.in_any(around)))

    return [
        Found(
            # the book's own footnotes would read as our citations
            quote=replace(quote, before="") if has_marker(quote.before) or _REFERS.fullmatch(quote.before) else quote,
            number=passage.number,
            heading=quote.heading or passage.heading,
            similarity=passage.similarity,
            odds=likely,
        )
        for passage, of_quotes in zip(passages, odds, strict=True)
        for quote, likely in zip(quotes_of(passage.text), of_quotes, strict=True)
        if (code or quote.kind != "code")
        and fits(quote, (passage.heading, quote.heading, quote.before, quote.text))
        and not any(siblings.another(title, (quote.before, quote.text)) for title in (passage.page, passage.heading))
        and not has_marker(quote.text)
        and not _REFERS.fullmatch(quote.text)
    ]


def _unrelated(signals: Signals) -> bool:
    return signals["context"] == 0 and signals["shared_loosely"] == 0 and signals["cosine"] < UNRELATED


def _choose(ranked: Sequence[tuple[Found, float]], asked: Question) -> list[_Chosen]:
    """The most likely quote, then others as long as their chance is worth their length."""
    chosen: list[_Chosen] = []
    for found, chance in ranked:
        room = MOST_WORDS - sum(one.words for one in chosen)
        if chosen and (
            chance < max(LEAST, WORTH * found.quote.words) or found.quote.words > room or _told(found.quote, chosen)
        ):
            continue
        if found.quote.kind == "code" and sum(one.found.quote.kind == "code" for one in chosen) == MOST_LISTINGS:
            continue
        before = _needed(found.quote, asked)
        if any(one.found.number == found.number and before in (one.found.quote.text, one.before) for one in chosen):
            before = ""
        one = _Chosen(found=found, before=before)
        if one.words > room:
            if chosen:  # what leans on a sentence that finds no room is better left out
                continue
            one = _Chosen(found=found)
        chosen.append(one)
        if len(chosen) == MOST_QUOTES:
            break
    first, *more = chosen
    return [first, *sorted(more, key=lambda one: (one.found.number, one.found.quote.place))]


def _needed(quote: Quote, asked: Question) -> str:
    """What must be quoted with it, if anything."""
    match quote.kind:
        case "sentence":
            return quote.before if quote.leans else ""
        case "item":
            leads = quote.before.endswith(":") and asked.adds(quote.before, quote.text)
            return quote.before if quote.leans or leads else ""
        case "row":
            return quote.before if quote.text.count("|") >= HEADED - 1 else ""
        case "code":
            return quote.before
        case "list":
            return ""


def _told(quote: Quote, chosen: Sequence[_Chosen]) -> bool:
    """Whether the reply says this already."""
    words = stems(quote.text)
    said = [stems(text) for one in chosen for text in (one.found.quote.text, one.before) if text]
    return any(len(words & other) >= REPEATS * min(len(words), len(other)) for other in said)


def _rendered(chosen: Sequence[_Chosen]) -> str:
    """The reply: sentences run on, everything else stands apart; each piece carries its number."""
    blocks: list[str] = []
    running = False
    for one in chosen:
        quote, mark = one.found.quote, f"[{one.found.number}]"
        prose = [one.before] if one.before and quote.kind != "row" else []
        prose += [quote.text] if quote.kind in ("sentence", "item") else []
        for text in prose:
            blocks[-1:] = [f"{blocks[-1]}{_marked(text, mark)}"] if running else [*blocks[-1:], _marked(text, mark)]
            running = True
        if quote.kind not in ("sentence", "item"):
            blocks.append(_apart(one, mark))
            running = False
    return "\n\n".join(block.strip() for block in blocks)


def _marked(text: str, mark: str) -> str:
    """A piece of prose and its number; several where it will be read as several sentences, each checked by itself."""
    stream = SentenceStream()
    pieces = [piece.text for piece in (*stream.feed(text), *stream.flush())]
    # What ends in no full stop, such as a lead-in, ends its line.
    return "".join(f"{piece} {mark}{' ' if _ENDED.search(piece) else chr(10)}" for piece in pieces)


def _apart(one: _Chosen, mark: str) -> str:
    quote = one.found.quote
    if quote.kind == "code":
        fence = "~~~" if "```" in quote.text else "```"
        return f"{fence}{quote.language}\n{dedent(quote.text)}\n{fence}\n{mark}"
    if quote.kind == "list":
        lead, *items = (_marked(part, mark).strip() for part in quote.parts)
        return "\n\n".join((lead, "\n".join(items)))
    return "\n\n".join(_marked(row, mark).strip() for row in (one.before, quote.text) if row)
