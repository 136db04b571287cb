"""The answerer that needs no key: it shows the excerpts of the book that most likely answer, each with citations, and
adds no words. Passages are ranked and quoted, never obeyed: an instruction planted in a lesson is treated as any other
sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lectern.answering.instructions import NOT_COVERED
from lectern.confidence.locating import locate
from lectern.confidence.ranking import Candidate, Ranked, Shortlist, Signals, candidates_of
from lectern.confidence.requirements import asks_for_all, compared_in, with_code
from lectern.ports.answering import AnswerLocator, Passage
from lectern.text.excerpts import Excerpt, Part, cited, continued, only, preceded
from lectern.text.quotes import NEEDS_CONTEXT, quotes_of
from lectern.text.words import content_stems, stems

MODEL_NAME = "offline-extractive"
MAX_REPLY_WORDS = 220  # of a reply with more than one excerpt
MAX_EXCERPTS = 3
MIN_FURTHER_PROBABILITY, MIN_THIRD_PROBABILITY = 0.05, 0.08  # of excerpts after the first
MAX_PARAGRAPH_WORDS = 90  # a longer paragraph is cut to its most likely sentences
MAX_LIST_WORDS, MAX_WHOLE_LIST_WORDS = 120, 320  # of a list: otherwise its most likely items, or if all are asked for
MAX_ROWS, MAX_ALL_ROWS = 6, 25  # of a table, likewise
MAX_LISTING_LINES = 30
MAX_CONTINUED_WORDS, MAX_ANNOUNCED_WORDS = 100, 200  # of an excerpt with what is below it; if a sentence announces it
MAX_PRECEDED_WORDS = 160  # of an excerpt with what is above and below it
MIN_RELATED_ODDS = -4.0  # an excerpt below it that shares no word with the question has nothing to do with it
REPETITION_SHARE = 0.8  # of words in common, from which a second excerpt says nothing new


class OfflineWriter:
    """Shows the excerpts that most likely answer."""

    model = MODEL_NAME

    def __init__(self, locator: AnswerLocator) -> None:
        self._locator = locator

    async def write(self, question: str, passages: Sequence[Passage]) -> str:
        """The best excerpts with their passages' numbers, or `NOT_COVERED` if none is related to the question."""
        odds = await locate(self._locator, question, passages)
        shortlist = Shortlist(question, candidates_of(question, passages, odds))
        ranked = shortlist.ranked()
        if not ranked or _is_unrelated(ranked[0].signals):
            return NOT_COVERED
        chosen = _choose(_both_sides(ranked, question), shortlist, question)
        return "\n\n".join(cited(entry.excerpt, entry.passage, f"[{entry.number}]") for entry in chosen)


def _is_unrelated(signals: Signals) -> bool:
    return signals["context"] == 0 and signals["odds"] < MIN_RELATED_ODDS


def _both_sides(ranked: Sequence[Ranked], question: str) -> list[Ranked]:
    """The ranked excerpts; of a comparison of which the first tells one side only, the best of the other side comes
    second, and is shown. It is one whose heading names that side and not the first one."""
    sides = compared_in(question)
    first, *others = ranked
    if sides is None or all(side <= _words_with_heading(first.candidate) for side in sides):
        return list(ranked)
    for told, other in (sides, sides[::-1]):
        if not told <= _words_with_heading(first.candidate):
            continue
        for entry in others:
            heading = content_stems(entry.candidate.heading)
            if other <= heading and not told & heading:
                promoted = replace(entry, probability=max(entry.probability, MIN_FURTHER_PROBABILITY))
                return [first, promoted, *(rest for rest in others if rest is not entry)]
    return list(ranked)


def _words_with_heading(candidate: Candidate) -> set[str]:
    return stems(f"{candidate.heading} {candidate.excerpt.text}")


def _choose(ranked: Sequence[Ranked], shortlist: Shortlist, question: str) -> list[Candidate]:
    """The most likely excerpt, then further ones that are likely enough and say something new."""
    chosen: list[Candidate] = []
    words = 0
    for entry in ranked:
        fitted = _fitted(entry.candidate, wants_all=asks_for_all(question))
        fitted = _continued(fitted, question, shortlist, is_first=not chosen)
        if chosen and (
            entry.probability < _needed_chance(fitted, chosen, shortlist)
            or words + fitted.excerpt.words > MAX_REPLY_WORDS
            or _repeats(fitted.excerpt, chosen)
        ):
            continue
        chosen.append(fitted)
        words += fitted.excerpt.words
        if len(chosen) == MAX_EXCERPTS:
            break
    first, *further = chosen
    return [first, *sorted(further, key=lambda candidate: (candidate.number, candidate.excerpt.start))]


def _continued(candidate: Candidate, question: str, shortlist: Shortlist, *, is_first: bool) -> Candidate:
    """The candidate with what is below it: the first one as far as a reader takes it in at a glance, others only with
    what they announce. What is above the first one is added if it cannot be understood without, or if that has a word
    of the question that it lacks."""
    passage = candidate.passage
    max_words = MAX_CONTINUED_WORDS if is_first else 0
    whole = continued(candidate.excerpt, passage, max_words, MAX_ANNOUNCED_WORDS, with_listings=with_code(question))
    below = replace(candidate, excerpt=whole)
    if not is_first:
        return below
    around = replace(candidate, excerpt=preceded(whole, passage, MAX_PRECEDED_WORDS))
    leans = NEEDS_CONTEXT.match(whole.pieces[0].text) is not None
    return around if leans or shortlist.missing([around]) < shortlist.missing([below]) else below


def _needed_chance(candidate: Candidate, chosen: Sequence[Candidate], shortlist: Shortlist) -> float:
    """How likely a further excerpt must be. One that has a word of the question that is still missing, such as the
    other side of a comparison, may be less likely."""
    needed = MIN_FURTHER_PROBABILITY if len(chosen) == 1 else MIN_THIRD_PROBABILITY
    return needed / 2 if shortlist.missing((*chosen, candidate)) < shortlist.missing(chosen) else needed


def _repeats(excerpt: Excerpt, chosen: Sequence[Candidate]) -> bool:
    """Whether the reply already says what an excerpt says."""
    words = stems(excerpt.text)
    return any(
        len(words & other) >= REPETITION_SHARE * min(len(words), len(other))
        for other in (stems(entry.excerpt.text) for entry in chosen)
    )


def _fitted(candidate: Candidate, *, wants_all: bool) -> Candidate:
    """The candidate with an excerpt that is not too long: of a long one its most likely parts."""
    excerpt = candidate.excerpt
    match excerpt.kind:
        case "paragraph" if excerpt.words > MAX_PARAGRAPH_WORDS:
            parts: tuple[Part, ...] = (_sentences(candidate, excerpt.parts[0]),)
        case "list" if excerpt.words > (MAX_WHOLE_LIST_WORDS if wants_all or excerpt.is_ordered else MAX_LIST_WORDS):
            parts = _items(candidate, MAX_WHOLE_LIST_WORDS if wants_all else MAX_LIST_WORDS)
        case "table" if len(excerpt.parts[0].pieces) > (MAX_ALL_ROWS if wants_all else MAX_ROWS):
            parts = (_rows(candidate, MAX_ALL_ROWS if wants_all else MAX_ROWS),)
        case "listing" if len(excerpt.parts[0].pieces[0].block.lines) > MAX_LISTING_LINES:
            parts = (_lines(candidate),)
        case _:
            return candidate
    return replace(candidate, excerpt=replace(excerpt, parts=parts))


def _sentences(candidate: Candidate, part: Part) -> Part:
    """The most likely sentence of a paragraph with those around it: first what follows, then what precedes."""
    pieces = part.pieces
    best = max(range(len(pieces)), key=lambda at: candidate.odds_of(pieces[at : at + 1]))
    first, last = best, best + 1

    def fits(first: int, last: int) -> bool:
        return sum(len(piece.text.split()) for piece in pieces[first:last]) <= MAX_PARAGRAPH_WORDS

    while last < len(pieces) and fits(first, last + 1):
        last += 1
    while first > 0 and fits(first - 1, last):
        first -= 1
    return only(part, pieces[first:last])


def _items(candidate: Candidate, max_words: int) -> tuple[Part, ...]:
    """The most likely items of a list, in their order, as many as fit."""
    parts = candidate.excerpt.parts
    ranked = sorted(parts, key=lambda part: -candidate.odds_of(part.pieces))
    chosen = [ranked[0]]
    for part in ranked[1:]:
        if sum(entry.words for entry in chosen) + part.words <= max_words:
            chosen.append(part)
    return tuple(part for part in parts if part in chosen)


def _rows(candidate: Candidate, max_rows: int) -> Part:
    part = candidate.excerpt.parts[0]
    ranked = sorted(part.pieces, key=lambda piece: -candidate.odds_of((piece,)))
    return only(part, ranked[:max_rows])


def _lines(candidate: Candidate) -> Part:
    """The most likely paragraph of a long listing."""
    (listing,) = candidate.excerpt.parts[0].pieces
    quotes = [quote for quote in quotes_of(candidate.passage) if quote.kind == "code" and quote.start == listing.start]
    text = quotes[0].text if quotes else "\n".join(listing.text.split("\n")[:MAX_LISTING_LINES])
    return Part(pieces=(replace(listing, text=text),), is_whole=False)
