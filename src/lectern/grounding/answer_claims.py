"""The claims of an answer: a sentence that states something, a list item with its lead, a table row with its head, a
listing. Each has its position in the answer, the markers that stand with it, and the text that is judged. A claim has
only the markers of its own: it inherits none from the sentence before it. Headings, leads without a marker, questions,
"Yes." and what an answer says about the book itself are no claims. A heading or bold line that is a whole sentence is
one, and so is what a sentence says besides its words about the book."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Literal, NamedTuple

from lectern.text.blocks import Block, blocks_of
from lectern.text.markers import cited_numbers, marker_spans, note_marks
from lectern.text.pieces import NO_STATEMENT_ENDS, Piece, count_words, read, split_cells, states
from lectern.text.plain import plain
from lectern.text.quantities import NUMBER_WORDS, quantities_of
from lectern.text.words import FUNCTION_WORDS, words_of

ClaimKind = Literal["sentence", "item", "row", "listing", "quote"]

MIN_CONTENT_WORDS = 2  # of a sentence that claims something
MIN_LEAD_WORDS = 2  # content words of a lead that says what its items are about
MAX_LEAD_WORDS = 40
MAX_LABEL_WORDS = 5  # of marked words before what is said of them; more are a statement
MAX_CLAUSE = 300  # characters of a clause that may be about the book
MIN_TITLE_WORDS = 4  # of a heading or bold line that is a sentence

# What an answer says about the book itself: that it does not say something.
_BOOK = (
    r"(?:book|context|passages?|excerpts?|chapters?|lessons?|documentation|docs|handbook|guide|text|sources?|sections?)"
)
_BOOK_PART = (
    r"(?:lessons?|chapters?|sections?|modules?|pages?|passages?|book|documentation"
    r"|parts?(?=\s+(?:\d|[IVX]+\b|of (?:the|this) book)))"
)
_SAYING = (
    r"(?:says?|said|stated?|states|mentions?|mentioned|covers?|covered|describes?|described|gives?|given|specif(?:y|ies|ied)"
    r"|explains?|explained|shows?|shown|provides?|provided|includes?|included|lists?|listed|discuss(?:es|ed)?|compares?"
    r"|compared|names?|named|tells?|answers?|answered|go(?:es)?|contains?|contained|found)"
)
_NOT = r"(?:not|n't|n’t|never|nothing|no|nor|nowhere|only)"
_THE_BOOK = rf"(?:the|this|these|those)\s+(?:\w+\s+){{0,2}}?{_BOOK}\b"
_OPENING = (
    r"^\W*(?:(?:however|but|also|no|sorry|unfortunately|beyond that|that said|note that"
    rf"|(?:based on|according to|from)\s+{_THE_BOOK}(?:\s+\w+){{0,2}}),?\s+){{0,3}}"
)
_ABOUT_THE_BOOK = re.compile(
    rf"(?i){_OPENING}(?:{_THE_BOOK}[^.;,]{{0,30}}?\b{_NOT}|(?:none|neither)\s+of\s+{_THE_BOOK}|(?:no|neither)\s+{_BOOK}"
    rf"|(?:it|they)\s+do(?:es)?\s+not(?=\s+(?:say|state|mention|compare|discuss|specify|explain|go into)\b))\b"
    rf"[^.;,]{{0,40}}?\b{_SAYING}\b"
    r"|^(?!\W*(?:do not|never)\b)(?!.{0,80}\b(?:must|should) (?:not|never)\b)"  # `never use it as shown in the book`
    rf"[^.;,]{{0,80}}?\b{_NOT}\b[^.;,]{{0,30}}?\b{_SAYING}\b[^.;,]{{0,20}}?\b(?:in|by)\s+{_THE_BOOK}"
)
_NOT_FOUND = re.compile(
    rf"(?i){_OPENING}(?:"
    r"I (?:could|can|did|do) not (?:find|have|see)\b"
    r"|I(?: am|['’]m) sorry\W*$"
    r"|I (?:could|can) not (?:answer|compare|confirm|contrast|say|tell)\b"
    r"|(?:the|this|that)\s+question\s+can\s+not\s+be\s+answered\b"
    rf"|{_THE_BOOK}[^.;,]{{0,30}}?\b{_SAYING}\s+(?:nothing|no|little)\b"
    rf"|{_THE_BOOK}\s+(?:(?:is|are|remains?)\s+silent|leaves?\s+(?:it\s+)?open)\b"
    rf"|nothing\s+in\s+{_THE_BOOK}"
    rf"|it\s+(?:is|remains)\s+(?:unclear|not clear|open)\b[^.;]{{0,30}}?\b{_THE_BOOK}"
    rf"|(?:there\s+(?:is|are)\s+)?no\s+[^.;,]{{0,80}}?\b(?:in|by)\s+{_THE_BOOK}"
    r"|there\s+(?:is|are)\s+no\s+(?:information|mention|details?)\b"
    r"|no\s+(?:information|mention|details?)\b[^.;]{0,60}?\b(?:is|are)\s+(?:made|given|provided|available)\b"
    r"|[^.;,]{0,80}?\b(?:is|are)\s+not\s+(?:mentioned|discussed|covered here|specified here|stated)\W*$"
    r")"
)
_SOURCES = re.compile(r"(?i)\W*(?:sources?|references?|citations?|further reading|quellen?)\W*")
_SOURCE_LINE = re.compile(r"(?i)\W*(?:sources?|references?|quellen?)\s*:")
_ONLY_A_NUMBER = re.compile(r"(?i)\bonly\b.*\d")  # "the book only gives 3 of them" states a number
_COUNTING = re.compile(rf"(?i)\S*\d\S*|\b(?:{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})\b")
_LABEL = re.compile(r"(?:\*\*[^*]+\*\*|__[^_]+__|\*[^*]+[.:]\*|_[^_]+[.:]_)[.:]?")  # stands before what is said of it
_ANNOUNCEMENTS = frozenset(  # labels that say nothing about what follows
    "answer answers caution definition details explanation hint important info key note notes option part phase point "
    "reason remark result short stage step summary takeaway tip warning".split()
)
_KINDS: dict[str, ClaimKind] = {"item": "item", "row": "row", "code": "listing"}
_QUOTE_SIGN = re.compile(r"[ \t]*>")
_GAP = re.compile(r"(?<=\w) +(?=[.,;:!?](?:\s|$)|[。，；：！？])")
_POINTING = rf"\b(?:{_BOOK_PART}\b|(?:above|below)(?=\W*$))"
_REFERENCE = re.compile(
    rf"(?i)^\W*(?:for (?:more|further|details)\b[^.,;:]{{0,40}},\s*)?(?:also |please )*"
    rf"(?:(?:see(?! (?:that|to)\b)|refer to|consult)\b[^.;:]{{0,60}}?{_POINTING}"
    rf"|read\s+(?:(?:more|in|on|about|the|this|that|next)\s+)*{_BOOK_PART}\b)"
    rf"|^\W*(?:for (?:more |further )?(?:details?|information|reading|examples?|explanations?)|more on this)\b"
    rf"[^.;:]{{0,60}}?{_POINTING}"
)
_JOINT = re.compile(r"(?i),?\s+but\s+|;\s+|:\s+|,\s+(?:and|so|yet|however)\s+|\s+(?P<and>and)\s+")
_VERB = re.compile(
    r"(?i)\b(?:is|are|was|were|has|have|had|do|does|did|can|could|must|should|shall|may|might|will|would|never)\b"
)
_ASKING = r"how|what|when|where|why|which|who|whose|whether"
_IMPERATIVE = re.compile(  # `cut the wire`
    rf"(?i)(?!(?:{_ASKING}|in|of|for|on|with|by|to|from|at|as|or|than|about|between|the|an?|\w+ing)\b)[a-z]+\s+"
    r"(?:the|an?|your|all|any|each|every|this|that|these|those|it|no)\b"
)
_TITLE_QUESTION = re.compile(rf"(?i)\W*(?:{_ASKING})\b")  # `How the pump starts` asks, as a heading
_FULL_STOP = re.compile(r"[.!。！][*_]*$")
_TAG_NAMES = (
    r"(?:a|abbr|b|blockquote|br|center|dd|del|details|div|dl|dt|em|font|h[1-6]|hr|i|ins|kbd|li|mark|ol|p|s|section|small"
    r"|span|strong|sub|summary|sup|table|tbody|td|th|thead|tr|u|ul)"
)
_CODE_OR_TAG = re.compile(rf"(?i)`+[^`\n]*`+|(?P<tag></?{_TAG_NAMES}(?:\s[^<>\n]{{0,300}})?/?>)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerClaim:
    """A claim of an answer."""

    kind: ClaimKind
    text: str  # what is judged: plain text with lead or head, or the lines of a listing
    bare: str  # the same without lead or head
    start: int  # position in the answer, without list signs, with its markers; of a listing that of its fence
    end: int  # after the claim's markers
    markers: tuple[tuple[int, int], ...]  # positions of its markers
    citations: tuple[int, ...]  # the numbers in its markers, and in those below its table
    cells: tuple[tuple[str, str], ...] = ()  # of a row, each with the head of its column
    lead_is_claim: bool = False  # its lead cites passages, so it is judged where it stands


def claims_of(answer: str) -> list[AnswerClaim]:
    """The claims of an answer, in order."""
    spans, tags = marker_spans(answer), _tag_spans(answer)
    notes = [(mark.start, mark.end) for mark in note_marks(answer)]
    blank = _blanked(answer, [*spans, *tags, *notes])
    pieces = read(blank)
    owned: list[list[tuple[int, int]]] = [[] for _ in pieces]
    beginnings = _beginnings(blank, pieces)
    starts = [start for start, _ in beginnings]
    for span in spans:  # a marker belongs to the piece that it is in or that ends before it
        place = beginnings[at][1] if (at := bisect_right(starts, span[0]) - 1) >= 0 else None
        if place is not None:
            owned[place].append(span)
    below = _markers_below_tables(blank, pieces, owned)
    claims = [
        _claim(piece, answer, tuple(markers), judged, below.get(id(piece.block), ()))
        for piece, markers, judged in zip(pieces, owned, _judged_texts(blank, pieces, owned), strict=True)
        if judged is not None
    ]
    return _with_tags(claims, answer, tags) if tags else claims


def only_denies(answer: str) -> bool:
    """Whether an answer says only, in its own words, that the book does not answer."""
    sentences = [text for piece in read(answer) if (text := _plain(piece.text))]
    return any(not _stated(sentence) for sentence in sentences) and not claims_of(answer)


def _beginnings(text: str, pieces: Sequence[Piece]) -> list[tuple[int, int | None]]:
    """Where the markers of each piece may begin, with its number; None for the head of a table, which is no piece. The
    first piece of a block, and each row, has its line from the beginning, as in `- [1] The dose`."""
    beginnings: list[tuple[int, int | None]] = []
    block: Block | None = None
    for number, piece in enumerate(pieces):
        start = piece.start
        if piece.block is not block and piece.block.headed:
            beginnings.append((piece.block.start, None))
        if piece.block is not block or piece.kind == "row":
            start = text.rfind("\n", 0, start) + 1
        beginnings.append((start, number))
        block = piece.block
    return beginnings


def _markers_below_tables(
    text: str, pieces: Sequence[Piece], owned: Sequence[Sequence[tuple[int, int]]]
) -> dict[int, list[tuple[int, int]]]:
    """The markers that stand alone in a paragraph below a table, by the table: they are those of all its rows."""
    below: dict[int, list[tuple[int, int]]] = {}
    for piece, markers in zip(pieces, owned, strict=True):
        if piece.kind != "row":
            continue
        for start, end in markers:
            line_end = text.find("\n", end)
            line = text[text.rfind("\n", 0, start) + 1 : line_end if line_end >= 0 else len(text)]
            if start >= piece.block.end and not line.strip():
                below.setdefault(id(piece.block), []).append((start, end))
    return below


def _claim(
    piece: Piece,
    answer: str,
    markers: tuple[tuple[int, int], ...],
    judged: _Judged,
    shared: Sequence[tuple[int, int]],
) -> AnswerClaim:
    kind = _KINDS.get(piece.kind, "sentence")
    if kind != "listing" and _QUOTE_SIGN.match(answer, piece.block.start):
        kind = "quote"
    return AnswerClaim(
        kind=kind,
        text=judged.text,
        bare=judged.bare,
        start=min([piece.block.start if kind == "listing" else piece.start, *(start for start, _ in markers)]),
        end=max([piece.block.end if kind == "listing" else piece.end, *(end for _, end in markers)]),
        markers=markers,
        citations=tuple(
            dict.fromkeys(number for start, end in (*markers, *shared) for number in cited_numbers(answer[start:end]))
        ),
        cells=tuple(_cells(piece)) if kind == "row" else (),
        lead_is_claim=judged.lead_is_claim,
    )


class _Judged(NamedTuple):
    """The text of a claim, with and without its lead or head."""

    text: str
    bare: str
    lead_is_claim: bool = False


def _judged_texts(
    text: str, pieces: Sequence[Piece], owned: Sequence[Sequence[tuple[int, int]]]
) -> Iterator[_Judged | None]:
    """The text of each piece as it is judged; None if it claims nothing."""
    label, in_sources = "", False
    cited = {text for piece, markers in zip(pieces, owned, strict=True) if markers for text in _texts(piece)}
    parents = list(_parents(text, pieces))
    followers = zip([*pieces[1:], None], [*parents[1:], ""], strict=False)
    for piece, (follower, next_parent), parent, markers in zip(pieces, followers, parents, owned, strict=False):
        in_sources = _names_sources(piece, in_sources=in_sources)
        is_label = next_parent == piece.text and _LABEL.fullmatch(piece.text) and not _lead(piece, parent)
        if in_sources or (is_label and not markers) or _SOURCE_LINE.match(piece.text):
            label = ""
            yield None
            continue
        goes_on = follower is not None and follower.block is piece.block
        if _is_label(piece, cited=bool(markers), goes_on=goes_on):
            label = _label(piece.text) if goes_on else ""
            yield None
            continue
        judged = _judged(piece, cited=bool(markers))
        if judged is not None and piece.kind in ("sentence", "item"):
            lead = _lead(piece, parent) if piece.kind == "item" else ""
            text_with_lead = ": ".join(filter(None, (lead, label, judged.bare)))
            judged = _Judged(text_with_lead, judged.bare, bool(lead) and not cited.isdisjoint((parent, piece.lead)))
        label = ""
        yield judged


def _texts(piece: Piece) -> tuple[str, str]:
    """A piece as the lead of items: its own text, and that of its block."""
    return piece.text, piece.block.text


def _names_sources(piece: Piece, *, in_sources: bool) -> bool:
    """Whether a piece is in a list of sources, which begins with that word and ends at the next heading."""
    if _SOURCES.fullmatch(plain(piece.text)):
        return True
    return in_sources and piece.kind != "heading"


def _label(text: str) -> str:
    """A bold label, if it says what the sentence after it is about."""
    label = _plain(text)
    content = [word for word in _content(label) if word not in _ANNOUNCEMENTS and not word.isdecimal()]
    return label.rstrip(".!: ") if content and not label.endswith("?") else ""


def _lead(item: Piece, parent: str) -> str:
    """What an item is about: its parent item, or else the lead of its list."""
    topic = _topic(parent)
    if _content(topic) and len(topic.split()) <= MAX_LEAD_WORDS:
        return topic
    lead = _topic(item.lead)
    return lead if _is_telling(lead) else ""


def _parents(text: str, pieces: Sequence[Piece]) -> Iterator[str]:
    """For each piece the text of the list item that its item is nested in."""
    block: Block | None = None
    parent = ""
    items: list[tuple[int, str]] = []  # the item before and those that contain it, with their indentation
    for piece in pieces:
        if piece.block is not block:
            block = piece.block
            line = text[block.start : block.end]
            width = len(line[: len(line) - len(line.lstrip(" \t>"))].expandtabs(4))
            while items and (items[-1][0] >= width or block.kind == "heading"):
                items.pop()
            parent = items[-1][1] if items and block.kind == "item" else ""
            if block.kind == "item":
                items.append((width, block.text))
        yield parent


def _judged(piece: Piece, *, cited: bool) -> _Judged | None:
    """The text of a piece without its context; None if it claims nothing. A lead that cites a passage is a claim."""
    match piece.kind:
        case "code":
            return _Judged(piece.text, piece.text) if piece.text.strip() else None
        case "row":
            cells = ", ".join(f"{head} {cell}".strip() for head, cell in _cells(piece))
            return _Judged(cells, _plain(piece.text)) if cells else None
        case "heading":
            bare = _stated(_plain(piece.text))
            return _Judged(bare, bare) if _is_sentence(piece.text, cited=cited) and _claims(bare, item=False) else None
        case "sentence" | "item":
            bare = _plain(piece.text)
            if cited and piece.kind == "sentence" and bare.endswith(":"):
                bare = bare.rstrip(": ") + "."
            bare = _stated(bare)
            return _Judged(bare, bare) if _claims(bare, item=piece.kind == "item") else None
        case _:
            return None


def _plain(text: str) -> str:
    """Plain text without the blank that a marker left before a full stop."""
    return _GAP.sub("", plain(text))


def _is_label(piece: Piece, *, cited: bool, goes_on: bool) -> bool:
    """Whether a piece is bold words before what is said of them, or a bold line that serves as a heading."""
    if not _LABEL.fullmatch(piece.text):
        return False
    if goes_on:
        return count_words(piece.text) <= MAX_LABEL_WORDS and _VERB.search(plain(piece.text)) is None
    is_whole_line = piece.block.text.strip() == piece.text
    return is_whole_line and piece.kind == "sentence" and not _is_sentence(piece.text, cited=cited)


def _is_sentence(title: str, *, cited: bool) -> bool:
    """Whether a heading or bold line is a whole sentence."""
    ends = cited or _FULL_STOP.search(title) is not None
    return ends and count_words(title) >= MIN_TITLE_WORDS and _TITLE_QUESTION.match(title) is None


def _stated(text: str) -> str:
    """A sentence without its first clauses that only point to the book or say what it does not say."""
    start = 0
    for joint in _JOINT.finditer(text):
        if joint.start() - start > MAX_CLAUSE:
            break
        clause, rest = text[start : joint.start()], text[joint.end() : joint.end() + MAX_CLAUSE]
        if joint["and"] and not _REFERENCE.match(clause):  # `how to start and stop it` is one clause
            continue
        if _begins_clause(joint[0], rest):
            if not _is_about_the_book(clause):
                return text[start:]
            start = joint.end()
    return "" if _is_about_the_book(text[start : start + MAX_CLAUSE]) else text[start:]


def _begins_clause(joint: str, rest: str) -> bool:
    """Whether a statement begins after a joint, and not only one more thing of an enumeration."""
    if ";" in joint or "but" in joint.lower() or _IMPERATIVE.match(rest):
        return True
    return joint.strip().lower() != "and" and bool(_VERB.search(rest) or any(part.kind for part in quantities_of(rest)))


def _is_about_the_book(clause: str) -> bool:
    if _REFERENCE.match(clause):
        return True
    is_about = _ABOUT_THE_BOOK.search(clause) or _NOT_FOUND.match(clause)
    return is_about is not None and not _ONLY_A_NUMBER.search(clause)


def _claims(text: str, *, item: bool) -> bool:
    if item:  # one word may be an item of an enumeration
        return bool(_content(text)) and not text.endswith(NO_STATEMENT_ENDS)
    return (
        states(text) and count_words(" ".join(_content(text))) >= MIN_CONTENT_WORDS
    )  # "Yes, it matters." states nothing of the book


def _topic(lead: str) -> str:
    """What a lead says its items are about, without its numbers and names: they are no statements of the items."""
    return " ".join(_COUNTING.sub(" ", plain(lead)).lower().split()).rstrip(".: ")


def _is_telling(lead: str) -> bool:
    """Whether a lead says what its items are about. `Here are the steps` does not."""
    return count_words(" ".join(_content(lead))) >= MIN_LEAD_WORDS and len(lead.split()) <= MAX_LEAD_WORDS


def _content(text: str) -> list[str]:
    return [word for word in words_of(text.lower()) if word not in FUNCTION_WORDS]


def _cells(row: Piece) -> Iterator[tuple[str, str]]:
    """The cells of a row that state something, each with the head of its column."""
    heads = [plain(cell) for cell in split_cells(row.head)] if row.head else []
    cells = [plain(cell) for cell in split_cells(row.text)]
    for head, cell in zip_longest(heads[: len(cells)], cells, fillvalue=""):
        if cell and not _is_about_the_book(cell):
            yield head, cell


def _tag_spans(answer: str) -> list[tuple[int, int]]:
    """The positions of HTML tags; those in code and in listings are content."""
    if "<" not in answer:
        return []
    listings = [(block.start, block.end) for block in blocks_of(answer) if block.kind == "code"]
    tags = [match.span("tag") for match in _CODE_OR_TAG.finditer(answer) if match["tag"]]
    starts = [start for start, _ in listings]
    return [tag for tag in tags if not (at := bisect_right(starts, tag[0])) or tag[0] >= listings[at - 1][1]]


def _with_tags(claims: Iterable[AnswerClaim], answer: str, tags: Iterable[tuple[int, int]]) -> list[AnswerClaim]:
    """Claims with the tags that open directly before them and close directly after them."""
    opening, closing = dict[int, int](), dict[int, int]()
    for start, end in tags:
        if answer.startswith("</", start):
            closing[start] = end
        else:
            opening[end] = start
    tagged = []
    for claim in claims:
        start, end = claim.start, claim.end
        while start in opening:
            start = opening[start]
        while end in closing:
            end = closing[end]
        tagged.append(replace(claim, start=start, end=end))
    return tagged


def _blanked(answer: str, spans: Iterable[tuple[int, int]]) -> str:
    """The answer with white space for markers and tags, so that all positions stay."""
    parts, end = [], 0
    for start, stop in sorted(spans):
        if stop > end:  # a marker may be in a tag
            parts += [answer[end:start], " " * (stop - max(start, end))]
            end = stop
    return "".join([*parts, answer[end:]])
