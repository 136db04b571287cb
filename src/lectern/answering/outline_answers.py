"""Answers questions about the book's structure from the outline: "how many modules", "what comes after the lesson
on …", "list the lessons of chapter 7", "in which chapter is … taught". Passages do not contain these answers. All other
questions are left to retrieval. Each lesson in an answer is cited by its first chunk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lectern.answering.book_parts import PART, BookParts, Level, Part, parts_inside
from lectern.answering.lesson_openings import Excerpt
from lectern.domain.outline import Outline, OutlineLesson
from lectern.text.strings import DEFAULT_LANGUAGE, Strings, strings_of
from lectern.text.words import content_stems, stems

MAX_LINES = 30
MODULE_WORDS = ("unit", "part", "week")  # by which the titles of modules may call them
BOOK = (
    r"(?:(?:this|the|your|that|these) (?:whole |entire |online |little )?"
    r"(?:book|e-?book|guide|handbook|manual|course|curriculum|training|workshop|textbook|documentation|docs|tutorial"
    r"|wiki|site|website)|this lesson|these (?:lessons|pages|notes|guides|tutorials))"
)
_KIND = rf"(?P<kind>{PART})s?"
_COUNT = re.compile(rf"\bhow many {_KIND}\b(?P<rest>[^?]*)", re.IGNORECASE)
_OF_ALL = re.compile(
    rf"\W*(?:(?:are there|there are|are|does|do|has|in)\b\s*)?(?:in |of )?(?:{BOOK}|it|there)?"
    r"\s*(?:have|has|contain|contains|include|consist of|altogether|in total|in all)?\W*",
    re.IGNORECASE,
)
_COUNT_INSIDE = re.compile(
    r"\s*(?:are (?:there )?(?:in|of)|are in|does|do|has|in|of|belong to)\s+"
    r"(?P<outer>.+?)(?:\s+(?:have|contain|include|consist of))?\W*",
    re.IGNORECASE,
)
_LIST = re.compile(
    r"\b(?:list|name|what are|which are|show|give me)\b[^?.]{0,30}\b(?:the|all|its|every)?\s*"
    r"(?P<part>module|chapter|lesson|unit|section|part|week)s?\b"
    r"|\btable of contents\b|\boutline of (?:the|this) book\b"
    r"|\b(?:which|what) (?P<held>module|chapter|lesson|unit|part|week)s (?:does (?:the|this) book "
    r"(?:have|contain|consist of)|are there|are in (?:the|this) book)\b",
    re.IGNORECASE,
)
_NEIGHBOUR = re.compile(
    r"\b(?:what|which)\b(?P<asked>[^?]{0,40}?)\b(?P<way>comes? (?:right |just |directly |next )?(?:after|before)"
    r"|follows?|precedes?|(?:is|are|do (?:i|we) (?:read|do|learn)|should i (?:read|do|learn)) "
    r"(?:right |just |directly |next )?(?:after|before))\b(?P<topic>[^?]*)",
    re.IGNORECASE,
)
_NEXT = re.compile(  # `I've finished the quick start. What should I read next?`
    r"\b(?:finished|completed|done with|through with|(?:worked|got|gone) through|(?:have|'ve|just) read)"
    r"(?: reading| with)? (?P<topic>[^.,;?!]+)[.,;?!]\s+(?:and |so |but )?(?:what|which)[^?.!]*"
    rf"\b(?:{PART}s?|read|study|learn)\b[^?.!]*\b(?:next|then|after (?:that|it)|from here)\b",
    re.IGNORECASE,
)
_ONE = re.compile(r"^\s*(?:the )?one (?:(?:on|about|called|titled|named) )?|^\s*that (?:on|about) ", re.IGNORECASE)
_TEACHES = (
    r"(?:covers?|discuss\w*|explain\w*|teach\w*|deals? with|treats?|introduce\w*|talks? about|mentions?|contains?)"
)
_WHERE = re.compile(  # `Which units does URDF use?` is about units of measure
    rf"\b(?:in )?(?:which|what) (?:(?:module|chapter|lesson)s? (?:is|are|does|do|can|{_TEACHES})"
    rf"|(?:unit|section|part|week)s? {_TEACHES})\b(?P<topic>[^?]*)"
    rf"|\bwhere (?:in (?:the|this) book )?(?:is|are) (?P<taught>[^?]*?) (?:taught"
    rf"|covered|explained|introduced|discussed)",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    rf"\b(?:which|what|list|name|show)\b[^?]{{0,30}}?\b(?P<inner>{PART}|topic)s\b[^?]{{0,30}}?"
    r"\b(?:of|in|does|belong to|make up)\s+(?P<outer>[^?.]*\w)",
    re.IGNORECASE,
)
_AFTER_OUTER = re.compile(
    r"(?:,? (?:have|contain|contains|include|cover|consist of|has|in order|in sequence|please|for me))+$", re.IGNORECASE
)
_TITLE = re.compile(
    r"\b(?:what(?: is|'s)|tell me)? ?(?:the )?(?:title|name) of (?P<of>[^?]+)"
    r"|\bwhat(?: is|'s) (?P<called>[^?]+?) (?:called|named|titled)\b|\bwhat is the title of (?P<titled>[^?]+)",
    re.IGNORECASE,
)
_EXTREME = re.compile(
    rf"\b(?:what|which)(?:'s| is| are)? (?P<part>(?:the )?(?P<end>first|last|final|opening) (?:{PART})\b[^?]*)",
    re.IGNORECASE,
)
_OF_THE_BOOK = (
    "all every its book course whole entire please order contents table outline tell can could list name show give have"
)
_PAGE_WORDS = "page topic tutorial section thing directly right immediately"
_PARTS = "module chapter lesson unit section part week"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of an answer, and what it is cited by: words of a passage, or the first passage of a lesson. A line
    without either only introduces the next ones."""

    text: str
    lesson: OutlineLesson | None = None
    excerpt: Excerpt | None = None


def about_structure(question: str) -> bool:
    """Whether a question may be about the structure. If not, the outline is not read, which can be slow."""
    shapes = (_COUNT, _LIST, _NEIGHBOUR, _NEXT, _WHERE, _INSIDE, _TITLE, _EXTREME)
    return any(shape.search(question) for shape in shapes)


def structure_lines(question: str, outline: Outline, strings: Strings | None = None) -> list[Line]:
    """The answer of the outline to a question, empty if the question is not about the structure; in English if no
    strings are given."""
    strings = strings or strings_of(DEFAULT_LANGUAGE)
    answers = _StructureAnswers(BookParts(outline), strings)
    for answer in (
        answers.neighbour,
        answers.next_after,
        answers.extreme,
        answers.title,
        answers.count,
        answers.inside,
        answers.where,
        answers.list_parts,
    ):
        if lines := answer(question):
            return shorten(lines, strings)
    return []


class _StructureAnswers:
    """A method for each kind of question; a method returns no lines for other questions."""

    def __init__(self, book: BookParts, strings: Strings) -> None:
        self._book = book
        self._strings = strings

    def count(self, question: str) -> list[Line]:
        """How many modules, chapters or lessons the book or one of its parts has."""
        if not (match := _COUNT.search(question)) or content_stems(question[: match.start()]):
            return []  # "… tutorial on paper; how many pages does it have?" is not about this book
        level = self._book.level_of(match["kind"].lower())
        if _OF_ALL.fullmatch(match["rest"]):
            parts = self._book.of(level)
            return [Line(text=count_sentence(parts, level, self._strings), lesson=parts[0].page), *_items(parts)]
        if not (inside := _COUNT_INSIDE.fullmatch(match["rest"])):
            return []
        wholes = self._book.named(inside["outer"])
        if len(wholes) != 1 or not (parts := _inner(wholes[0], level)):
            return []
        key = f"outline.count_in.{level}"
        text = self._strings(key, count=len(parts), title=wholes[0].title)
        return [Line(text=text, lesson=wholes[0].page), *_items(parts)]

    def list_parts(self, question: str) -> list[Line]:
        """All modules, chapters or lessons."""
        if not (match := _LIST.search(question)):
            return []
        if content_stems(question) - stems(f"{_OF_THE_BOOK} {_PARTS}"):
            return []  # it asks for the units of something else
        return _items(self._book.of(self._book.level_of((match["part"] or match["held"] or "chapter").lower())))

    def inside(self, question: str) -> list[Line]:
        """The lessons of a chapter or module, the chapters of a module."""
        if not (match := _INSIDE.search(question)):
            return []
        wholes = self._book.named(_AFTER_OUTER.sub("", match["outer"]))
        inner = match["inner"].lower()
        level: Level | None = None if inner in ("topic", "page", "section", "part") else self._book.level_of(inner)
        return _items([part for whole in wholes for part in (_inner(whole, level) if level else whole.children)])

    def title(self, question: str) -> list[Line]:
        """The title of a lesson or chapter that the question names by its number."""
        if not (match := _TITLE.search(question)):
            return []
        name = (match["of"] or match["called"] or match["titled"]).strip(" .")
        parts = self._book.named(name) if re.search(rf"\b{PART}\b", name, re.IGNORECASE) else []
        bare = re.sub(r"^the ", "", name, flags=re.IGNORECASE)
        return [
            Line(
                text=self._strings("outline.title.part", name=bare[:1].upper() + bare[1:], title=part.title),
                lesson=part.page,
            )
            for part in parts
        ]

    def extreme(self, question: str) -> list[Line]:
        """The first or last lesson, chapter or module of the book, or of a part of it."""
        if not (match := _EXTREME.search(question)):
            return []
        end = "first" if match["end"].lower() in ("first", "opening") else "last"
        return [
            Line(text=self._strings(f"outline.{end}.{part.level}", title=part.title), lesson=part.page)
            for part in self._book.named(match["part"])
        ]

    def neighbour(self, question: str) -> list[Line]:
        """What comes after, or before, a lesson or chapter."""
        if not (match := _NEIGHBOUR.search(question)):
            return []
        way, asked = match["way"].lower(), re.search(rf"\b({PART})\b", match["asked"], re.IGNORECASE)
        if way.startswith(("follow", "preced")) and not asked:
            return []  # "follows" is also said of rules and patterns
        if content_stems(match["asked"]) - stems(f"{_PARTS} {_PAGE_WORDS}"):
            return []  # "which verb comes after …"
        part = self._neighbour_of(match["topic"], asked[1].lower() if asked else "")
        return self._beside(part, -1 if "before" in way or "preced" in way else 1)

    def next_after(self, question: str) -> list[Line]:
        """What comes after a lesson that the reader has finished."""
        match = _NEXT.search(question)
        return self._beside(self._neighbour_of(match["topic"], "lesson"), 1) if match else []

    def _beside(self, part: Part | None, step: int) -> list[Line]:
        """The part after or before another one of its level."""
        if part is None:
            return []
        siblings = self._book.of(part.level)
        at = siblings.index(part) + step
        if not 0 <= at < len(siblings):
            end = "first" if step < 0 else "last"
            return [Line(text=self._strings(f"outline.is_{end}.{part.level}", title=part.title), lesson=part.page)]
        key = "outline.after" if step > 0 else "outline.before"
        text = self._strings(key, title=siblings[at].title, other=part.title)
        return [Line(text=text, lesson=siblings[at].page)]

    def _neighbour_of(self, topic: str, kind: str) -> Part | None:
        """The part whose neighbour is asked for. Without a word such as "lesson", only a whole title counts."""
        named = self._book.named(topic)
        if not named and kind:
            named = self._book.named(f"{kind} on {_ONE.sub('', topic)}")
        if named:
            return named[0] if len(named) == 1 else None
        return self._book.exact(topic)

    def where(self, question: str) -> list[Line]:
        """The chapter or lesson whose title names a topic. A topic that no title names is left to retrieval."""
        if not (match := _WHERE.search(question)):
            return []
        topic = content_stems(match["topic"] or match["taught"] or "") - stems("taught covered discussed explained")
        if all(word.isdigit() for word in topic - stems(f"{_PARTS} book")):
            return []  # the question names a part and no topic
        return [
            Line(text=self._strings("outline.in_chapter", title=part.title, chapter=part.around[-1]), lesson=part.page)
            for part in self._book.lessons
            if topic and topic <= stems(f"{part.title} {part.around[-1]}")
        ]


def count_sentence(parts: Sequence[Part], level: Level, strings: Strings) -> str:
    """How many modules, chapters or lessons the book has. Modules are called units if their titles say so."""
    words = {word for word in MODULE_WORDS if all(word in dict(part.labels) for part in parts)}
    name = words.pop() if level == "module" and len(words) == 1 else level
    return strings(f"outline.count.{name}", count=len(parts))


def shorten(lines: list[Line], strings: Strings) -> list[Line]:
    """At most `MAX_LINES` lines; the last one says how many more there are."""
    if len(lines) <= MAX_LINES:
        return lines
    remaining = len(lines) - MAX_LINES + 1
    last = lines[MAX_LINES - 1]
    more = Line(text=strings("outline.more", count=remaining), lesson=last.lesson, excerpt=last.excerpt)
    return [*lines[: MAX_LINES - 1], more]


def _inner(whole: Part, level: Level) -> list[Part]:
    """The parts of a level inside another one."""
    return [part for part in parts_inside(whole) if part.level == level]


def _items(parts: Sequence[Part]) -> list[Line]:
    return [Line(text=f"- {part.title}", lesson=part.page) for part in parts]
