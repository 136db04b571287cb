"""Questions about the book's own structure ("how many modules", "what comes after the lesson on …", "list the lessons
of chapter 7", "in which chapter is … taught") are answered from the outline: it knows, and passages can only guess.
What is not plainly such a question is left to retrieval.

An answer from the outline, cited: each lesson that it names is cited by its first chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from lectern.answering.citations import citation
from lectern.answering.desk import TurnDesk
from lectern.domain.books import MAIN_MODULE
from lectern.domain.outline import Outline, OutlineChapter, OutlineLesson, OutlineModule
from lectern.domain.replies import Citation, Statement
from lectern.text.words import stems, telling_stems

T = TypeVar("T")

MOST_LINES = 30
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth".split()
_PART = r"(?P<part>module|chapter|lesson|unit|section|part)s?"
_COUNT = re.compile(rf"\bhow many {_PART}\b", re.IGNORECASE)
_LIST = re.compile(
    rf"\b(?:list|name|what are|which are|show|give me)\b[^?.]{{0,30}}\b(?:the|all|its|every)?\s*{_PART}\b"
    r"|\btable of contents\b|\boutline of (?:the|this) book\b"
    r"|\b(?:which|what) (?P<held>module|chapter|lesson)s (?:does (?:the|this) book (?:have|contain|consist of)"
    r"|are there|are in (?:the|this) book)\b",
    re.IGNORECASE,
)
_NEIGHBOUR = re.compile(
    r"\b(?:what|which)\b[^?]{0,40}\b(?P<way>comes? (?:right |just "
    r"|directly )?(?:after|before|next)|follows?|precedes?|is "
    r"(?:right |just )?(?:after|before))\b(?P<topic>[^?]*)",
    re.IGNORECASE,
)
_WHERE = re.compile(
    rf"\b(?:in )?(?:which|what) {_PART} (?:is|are|does|do|can|cover|covers|discuss\w*"
    rf"|explain\w*|teach\w*|deal\w*|treat\w*|"
    r"introduce\w*|talk\w*|mention\w*|contain\w*)\b(?P<topic>[^?]*)"
    rf"|\bwhere (?:in (?:the|this) book )?(?:is|are) (?P<taught>[^?]*?) (?:taught"
    rf"|covered|explained|introduced|discussed)",
    re.IGNORECASE,
)
_INSIDE = re.compile(
    r"\b(?:which|what|list|name|show)\b[^?]{0,30}?\b(?P<inner>lesson"
    r"|chapter)s?\b[^?]{0,30}?\b(?:of|in|does|belong\w* to|"
    r"are in|make up)\b(?P<outer>[^?]*)",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"\b(?:what is|title of|name of)\b[^?]{0,15}\b(?P<kind>lesson|chapter|module) (?P<number>\d+(?:\.\d+)?)\b"
    r"(?=[^?]{0,12}(?:called|named|titled|about|title|$|\?))",
    re.IGNORECASE,
)
_NAMES_PARTS = re.compile(r"\b(?:lesson|chapter|module)s?\b", re.IGNORECASE)
_PARTS = "module chapter lesson unit section part"
_OF_THE_BOOK = (
    "all every its book course whole entire please order contents table outline tell can could list name show give have"
)
_EXTREME = re.compile(r"\b(?:what|which) is the (?P<end>first|last) (?P<kind>lesson|chapter|module)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A sentence about the structure, and the lesson that it is cited by."""

    text: str
    lesson: OutlineLesson


def about_structure(question: str) -> bool:
    """Whether the outline is worth reading for a question: of a long book that takes longer than a search."""
    shapes = (_COUNT, _LIST, _NEIGHBOUR, _WHERE, _INSIDE, _CALLED, _EXTREME)
    return any(shape.search(question) for shape in shapes)


def structure_lines(question: str, outline: Outline) -> list[Line]:
    """What the outline says to a question, or nothing where it is not about the structure."""
    book = _Book(outline)
    for answer in (book.neighbour, book.extreme, book.called, book.count, book.inside, book.where, book.listed):
        if lines := answer(question):
            return _shortened(lines)
    return []


class _Book:
    """An outline, asked in one way after another."""

    def __init__(self, outline: Outline) -> None:
        self._modules = [module for module in outline.modules if module.module != MAIN_MODULE] or list(outline.modules)
        self.chapters = [(module, chapter) for module in outline.modules for chapter in module.chapters]
        self.lessons = [(module, chapter, lesson) for module, chapter in self.chapters for lesson in chapter.lessons]

    def count(self, question: str) -> list[Line]:
        """How many modules, chapters or lessons there are."""
        if not (asked := _COUNT.search(question)) or _names_a_part(question[asked.end() :]):
            return []
        part = asked["part"].lower()
        named = list(self._parts(part))
        if not named:
            return []
        noun = "lesson" if part in {"lesson", "unit", "section", "part"} else part
        head = f"The book has {len(named)} {noun}{'' if len(named) == 1 else 's'}"
        return [Line(text=f"{head}.", lesson=named[0][1]), *_itemised(named)]

    def listed(self, question: str) -> list[Line]:
        """All modules, chapters or lessons."""
        asked = _LIST.search(question)
        if not asked or _names_a_part(question[asked.end() :]):
            return []
        if telling_stems(question) - stems(f"{_OF_THE_BOOK} {_PARTS}"):
            return []  # units of something else
        return _itemised(list(self._parts((asked["part"] or asked["held"] or "chapter").lower())))

    def inside(self, question: str) -> list[Line]:
        """The lessons of a chapter or module, the chapters of a module."""
        if not (asked := _INSIDE.search(question)):
            return []
        if asked["inner"].lower() == "chapter":
            module = self._module_alone(asked["outer"])
            chapters = [one for one in module.chapters if one.chapter and one.lessons] if module else []
            return _itemised([(one.title, one.lessons[0]) for one in chapters])
        if (found := self._chapter(question)) is not None:
            return _itemised([(lesson.title, lesson) for lesson in found.lessons if lesson.lesson])
        module = self._module_alone(asked["outer"])
        parts = module.chapters if module else ()
        return _itemised([(one.title, one) for chapter in parts for one in chapter.lessons if one.lesson])

    def called(self, question: str) -> list[Line]:
        """The title of a lesson, chapter or module that is named by its number."""
        if not (asked := _CALLED.search(question)):
            return []
        number = asked["number"]
        if asked["kind"].lower() == "lesson" and "." in number:
            chapter, lesson = (int(part) for part in number.split("."))
            found = [one for _, of, one in self.lessons if (of.chapter, one.lesson) == (chapter, lesson)]
            return [Line(text=f"Lesson {number} is called “{one.title}”.", lesson=one) for one in found[:1]]
        if asked["kind"].lower() == "chapter" and "." not in number:
            chapters = [one for _, one in self.chapters if one.chapter == int(number) and one.lessons]
            return [Line(text=f"Chapter {number} is “{one.title}”.", lesson=one.lessons[0]) for one in chapters[:1]]
        return []

    def extreme(self, question: str) -> list[Line]:
        """The first or last of the book."""
        if not (asked := _EXTREME.search(question)) or _names_a_part(question[asked.end() :]):
            return []
        named = list(self._parts(asked["kind"].lower()))
        if not named:
            return []
        title, lesson = named[0 if asked["end"].lower() == "first" else -1]
        return [Line(text=f"The {asked['end'].lower()} {asked['kind'].lower()} is “{title}”.", lesson=lesson)]

    def neighbour(self, question: str) -> list[Line]:
        """What comes after, or before, a lesson or chapter."""
        if not (asked := _NEIGHBOUR.search(question)):
            return []
        way = asked["way"].lower()
        if way.startswith(("follow", "preced")) and not _NAMES_PARTS.search(question):
            return []  # rules and patterns are followed, too
        step = -1 if "before" in way or "preced" in way else 1
        chapterwise = bool(re.search(r"\bchapter\b", question, re.IGNORECASE))
        named = list(self._parts("chapter" if chapterwise else "lesson"))
        titles = [title for title, _ in named]
        numbered = self._chapter(asked["topic"]) if chapterwise else None
        at = titles.index(numbered.title) if numbered else _best(titles, asked["topic"], lambda title: title)
        if at is None:
            return []
        if not 0 <= at + step < len(named):
            if not _NAMES_PARTS.search(question):
                return []  # it may well be about something else that a title happens to name
            end, kind = "first" if step < 0 else "last", "chapter" if chapterwise else "lesson"
            return [Line(text=f"“{titles[at]}” is the {end} {kind} of the book.", lesson=named[at][1])]
        title, lesson = named[at + step]
        return [Line(text=f"“{title}” comes {'after' if step > 0 else 'before'} “{titles[at]}”.", lesson=lesson)]

    def where(self, question: str) -> list[Line]:
        """The chapter or lesson whose title names a topic; what no title names is left to retrieval."""
        if not (asked := _WHERE.search(question)):
            return []
        topic = telling_stems(asked["topic"] or asked["taught"] or "") - stems("taught covered discussed explained")
        if all(word.isdigit() for word in topic - stems("module chapter lesson book part unit section")):
            return []  # only a part is named, no topic
        found = [
            (module, chapter, lesson)
            for module, chapter, lesson in self.lessons
            if topic and topic <= stems(f"{lesson.title} {chapter.title}")
        ]
        return [
            Line(text=f"“{lesson.title}” is in the chapter “{chapter.title}”.", lesson=lesson)
            for _, chapter, lesson in found
        ]

    def _parts(self, part: str) -> Iterator[tuple[str, OutlineLesson]]:
        """Titles in order, each with the lesson it is cited by."""
        if part == "module":
            for module in self._modules:
                lessons = [lesson for chapter in module.chapters for lesson in chapter.lessons]
                if lessons:
                    yield module.title, lessons[0]
        elif part == "chapter":
            for _, chapter in self.chapters:
                if chapter.chapter and chapter.lessons:
                    yield chapter.title, chapter.lessons[0]
        else:
            for _, chapter, lesson in self.lessons:
                if lesson.lesson or not chapter.chapter:
                    yield lesson.title, lesson

    def _module(self, said: str) -> OutlineModule | None:
        number = re.search(r"\bmodule (\d+)\b", said, re.IGNORECASE)
        if number and 1 <= int(number[1]) <= len(self._modules):
            return self._modules[int(number[1]) - 1]
        at = _best(self._modules, said, lambda module: f"{module.title} {module.module}")
        return None if at is None else self._modules[at]

    def _module_alone(self, said: str) -> OutlineModule | None:
        """The module that is named, where nothing else is asked of what is in it."""
        module = self._module(said) if re.search(r"\bmodule\b", said, re.IGNORECASE) else None
        if module is None:
            return None
        more = telling_stems(said) - stems(f"{_PARTS} {_OF_THE_BOOK} {module.title} {module.module} belong contain")
        return None if any(not word.isdigit() for word in more) else module

    def _chapter(self, said: str) -> OutlineChapter | None:
        numbered = [chapter for _, chapter in self.chapters if chapter.chapter]
        if number := re.search(r"\bchapter (\d+)\b", said, re.IGNORECASE):
            return next((chapter for chapter in numbered if chapter.chapter == int(number[1])), None)
        ordinal = re.search(rf"\b({'|'.join(_ORDINALS)}|last) chapter\b", said, re.IGNORECASE)
        if ordinal and numbered:
            at = -1 if ordinal[1].lower() == "last" else _ORDINALS.index(ordinal[1].lower())
            return numbered[at] if at < len(numbered) else None
        if "chapter" not in said.lower():
            return None
        best = _best(numbered, said.lower().rpartition("chapter")[2], lambda chapter: chapter.title)
        return None if best is None else numbered[best]


def _shortened(lines: list[Line]) -> list[Line]:
    """No more than a reader wants, and how many more there are."""
    if len(lines) <= MOST_LINES:
        return lines
    left = len(lines) - MOST_LINES + 1
    return [*lines[: MOST_LINES - 1], Line(text=f"… and {left} more.", lesson=lines[MOST_LINES - 1].lesson)]


def _itemised(named: Sequence[tuple[str, OutlineLesson]]) -> list[Line]:
    return [Line(text=f"- {title}", lesson=lesson) for title, lesson in named]


def _names_a_part(rest: str) -> bool:
    """Whether the question goes on to one module, chapter or lesson: then it is not about the whole book."""
    return bool(
        re.search(
            r"\b(?:of|in|does) (?:the )?(?:\w+ )?(?:module|chapter|lesson)\b|\b(?:module|chapter) \d",
            rest,
            re.IGNORECASE,
        )
    )


def _best(items: Sequence[T], said: str, title: Callable[[T], str]) -> int | None:
    """The item whose title shares most words with what was said; None where none shares any, or two share as many."""
    asked = telling_stems(said) - stems("lesson chapter module one about on book")
    shared = [len(asked & stems(title(item))) for item in items]
    most = max(shared, default=0)
    return shared.index(most) if most and shared.count(most) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineAnswer:
    """What the outline says."""

    text: str
    citations: tuple[Citation, ...]
    statements: tuple[Statement, ...]


async def outline_answer(question: str, desk: TurnDesk) -> OutlineAnswer | None:
    """The answer to a question about the structure, or None."""
    if not about_structure(question):
        return None
    lines = structure_lines(question, await desk.library.outline(desk.scope.book_id))
    numbers: dict[str, int] = {}
    citations: list[Citation] = []
    statements: list[Statement] = []
    for line in lines:
        if line.lesson.parent_doc_id not in numbers:
            hit = await desk.first_of(line.lesson.parent_doc_id)
            if hit is None:
                continue  # the reader's scope does not show this lesson
            numbers[line.lesson.parent_doc_id] = len(numbers) + 1
            citations.append(citation(len(numbers), hit, ""))
        number = numbers[line.lesson.parent_doc_id]
        text = f"{line.text} [{number}]"
        statements.append(Statement(text=text, citations=(number,), verdict="supported", support=1.0))
    if not statements:
        return None
    text = "\n".join(one.text for one in statements)
    return OutlineAnswer(text=text, citations=tuple(citations), statements=tuple(statements))
