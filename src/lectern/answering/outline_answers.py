"""Answers questions about the book's structure from the outline: "how many modules", "what comes after the lesson
on …", "list the lessons of chapter 7", "in which chapter is … taught". Passages do not contain these answers. All other
questions are left to retrieval. Each lesson in an answer is cited by its first chunk."""

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
from lectern.text.words import content_stems, stems

T = TypeVar("T")

MAX_LINES = 30
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
_TITLE = re.compile(
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
    """Whether a question may be about the structure. If not, the outline is not read, which can be slow."""
    shapes = (_COUNT, _LIST, _NEIGHBOUR, _WHERE, _INSIDE, _TITLE, _EXTREME)
    return any(shape.search(question) for shape in shapes)


def structure_lines(question: str, outline: Outline) -> list[Line]:
    """The answer of the outline to a question, empty if the question is not about the structure."""
    book = _Book(outline)
    for answer in (
        book.neighbour,
        book.extreme,
        book.numbered_title,
        book.count,
        book.inside,
        book.where,
        book.list_parts,
    ):
        if lines := answer(question):
            return _shorten(lines)
    return []


class _Book:
    """An outline, with a method for each kind of question; a method returns no lines for other questions."""

    def __init__(self, outline: Outline) -> None:
        self._modules = [module for module in outline.modules if module.module != MAIN_MODULE] or list(outline.modules)
        self.chapters = [(module, chapter) for module in outline.modules for chapter in module.chapters]
        self.lessons = [(module, chapter, lesson) for module, chapter in self.chapters for lesson in chapter.lessons]

    def count(self, question: str) -> list[Line]:
        """How many modules, chapters or lessons there are."""
        if not (match := _COUNT.search(question)) or _names_a_part(question[match.end() :]):
            return []
        part = match["part"].lower()
        parts = list(self._parts(part))
        if not parts:
            return []
        noun = "lesson" if part in {"lesson", "unit", "section", "part"} else part
        head = f"The book has {len(parts)} {noun}{'' if len(parts) == 1 else 's'}"
        return [Line(text=f"{head}.", lesson=parts[0][1]), *_items(parts)]

    def list_parts(self, question: str) -> list[Line]:
        """All modules, chapters or lessons."""
        match = _LIST.search(question)
        if not match or _names_a_part(question[match.end() :]):
            return []
        if content_stems(question) - stems(f"{_OF_THE_BOOK} {_PARTS}"):
            return []  # it asks for the units of something else
        return _items(list(self._parts((match["part"] or match["held"] or "chapter").lower())))

    def inside(self, question: str) -> list[Line]:
        """The lessons of a chapter or module, the chapters of a module."""
        if not (match := _INSIDE.search(question)):
            return []
        if match["inner"].lower() == "chapter":
            module = self._module_alone(match["outer"])
            chapters = module.chapters if module else ()
            return _items(
                [(chapter.title, chapter.lessons[0]) for chapter in chapters if chapter.chapter and chapter.lessons]
            )
        if (chapter := self._chapter(question)) is not None:
            return _items([(lesson.title, lesson) for lesson in chapter.lessons if lesson.lesson])
        module = self._module_alone(match["outer"])
        lessons = [lesson for chapter in module.chapters for lesson in chapter.lessons] if module else []
        return _items([(lesson.title, lesson) for lesson in lessons if lesson.lesson])

    def numbered_title(self, question: str) -> list[Line]:
        """The title of a lesson or chapter that the question names by its number."""
        if not (match := _TITLE.search(question)):
            return []
        number = match["number"]
        if match["kind"].lower() == "lesson" and "." in number:
            place = tuple(int(part) for part in number.split("."))
            lessons = [lesson for _, chapter, lesson in self.lessons if (chapter.chapter, lesson.lesson) == place]
            return [Line(text=f"Lesson {number} is called “{lesson.title}”.", lesson=lesson) for lesson in lessons[:1]]
        if match["kind"].lower() == "chapter" and "." not in number:
            chapters = [chapter for _, chapter in self.chapters if chapter.chapter == int(number) and chapter.lessons]
            return [
                Line(text=f"Chapter {number} is “{chapter.title}”.", lesson=chapter.lessons[0])
                for chapter in chapters[:1]
            ]
        return []

    def extreme(self, question: str) -> list[Line]:
        """The first or last lesson, chapter or module of the book."""
        if not (match := _EXTREME.search(question)) or _names_a_part(question[match.end() :]):
            return []
        parts = list(self._parts(match["kind"].lower()))
        if not parts:
            return []
        title, lesson = parts[0 if match["end"].lower() == "first" else -1]
        return [Line(text=f"The {match['end'].lower()} {match['kind'].lower()} is “{title}”.", lesson=lesson)]

    def neighbour(self, question: str) -> list[Line]:
        """What comes after, or before, a lesson or chapter."""
        if not (match := _NEIGHBOUR.search(question)):
            return []
        way = match["way"].lower()
        if way.startswith(("follow", "preced")) and not _NAMES_PARTS.search(question):
            return []  # "follows" is also said of rules and patterns
        step = -1 if "before" in way or "preced" in way else 1
        chapterwise = bool(re.search(r"\bchapter\b", question, re.IGNORECASE))
        parts = list(self._parts("chapter" if chapterwise else "lesson"))
        titles = [title for title, _ in parts]
        numbered = self._chapter(match["topic"]) if chapterwise else None
        at = titles.index(numbered.title) if numbered else _best(titles, match["topic"], lambda title: title)
        if at is None:
            return []
        if not 0 <= at + step < len(parts):
            if not _NAMES_PARTS.search(question):
                return []  # the title may match by chance
            end, kind = "first" if step < 0 else "last", "chapter" if chapterwise else "lesson"
            return [Line(text=f"“{titles[at]}” is the {end} {kind} of the book.", lesson=parts[at][1])]
        title, lesson = parts[at + step]
        return [Line(text=f"“{title}” comes {'after' if step > 0 else 'before'} “{titles[at]}”.", lesson=lesson)]

    def where(self, question: str) -> list[Line]:
        """The chapter or lesson whose title names a topic. A topic that no title names is left to retrieval."""
        if not (match := _WHERE.search(question)):
            return []
        topic = content_stems(match["topic"] or match["taught"] or "") - stems("taught covered discussed explained")
        if all(word.isdigit() for word in topic - stems("module chapter lesson book part unit section")):
            return []  # the question names a part and no topic
        matches = [
            (module, chapter, lesson)
            for module, chapter, lesson in self.lessons
            if topic and topic <= stems(f"{lesson.title} {chapter.title}")
        ]
        return [
            Line(text=f"“{lesson.title}” is in the chapter “{chapter.title}”.", lesson=lesson)
            for _, chapter, lesson in matches
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

    def _module(self, text: str) -> OutlineModule | None:
        number = re.search(r"\bmodule (\d+)\b", text, re.IGNORECASE)
        if number and 1 <= int(number[1]) <= len(self._modules):
            return self._modules[int(number[1]) - 1]
        at = _best(self._modules, text, lambda module: f"{module.title} {module.module}")
        return None if at is None else self._modules[at]

    def _module_alone(self, text: str) -> OutlineModule | None:
        """The module that a text names, if the text has no other telling words."""
        module = self._module(text) if re.search(r"\bmodule\b", text, re.IGNORECASE) else None
        if module is None:
            return None
        more = content_stems(text) - stems(f"{_PARTS} {_OF_THE_BOOK} {module.title} {module.module} belong contain")
        return None if any(not word.isdigit() for word in more) else module

    def _chapter(self, text: str) -> OutlineChapter | None:
        numbered = [chapter for _, chapter in self.chapters if chapter.chapter]
        if number := re.search(r"\bchapter (\d+)\b", text, re.IGNORECASE):
            return next((chapter for chapter in numbered if chapter.chapter == int(number[1])), None)
        ordinal = re.search(rf"\b({'|'.join(_ORDINALS)}|last) chapter\b", text, re.IGNORECASE)
        if ordinal and numbered:
            at = -1 if ordinal[1].lower() == "last" else _ORDINALS.index(ordinal[1].lower())
            return numbered[at] if at < len(numbered) else None
        if "chapter" not in text.lower():
            return None
        best = _best(numbered, text.lower().rpartition("chapter")[2], lambda chapter: chapter.title)
        return None if best is None else numbered[best]


def _shorten(lines: list[Line]) -> list[Line]:
    """At most `MAX_LINES` lines; the last one says how many more there are."""
    if len(lines) <= MAX_LINES:
        return lines
    remaining = len(lines) - MAX_LINES + 1
    return [*lines[: MAX_LINES - 1], Line(text=f"… and {remaining} more.", lesson=lines[MAX_LINES - 1].lesson)]


def _items(parts: Sequence[tuple[str, OutlineLesson]]) -> list[Line]:
    return [Line(text=f"- {title}", lesson=lesson) for title, lesson in parts]


def _names_a_part(rest: str) -> bool:
    """Whether the rest of a question names a module, chapter or lesson: then it is not about the whole book."""
    return bool(
        re.search(
            r"\b(?:of|in|does) (?:the )?(?:\w+ )?(?:module|chapter|lesson)\b|\b(?:module|chapter) \d",
            rest,
            re.IGNORECASE,
        )
    )


def _best(items: Sequence[T], text: str, title: Callable[[T], str]) -> int | None:
    """The place of the item whose title shares most words with a text; None if there is none, or a tie."""
    words = content_stems(text) - stems("lesson chapter module one about on book")
    shared = [len(words & stems(title(item))) for item in items]
    most = max(shared, default=0)
    return shared.index(most) if most and shared.count(most) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineAnswer:
    """An answer from the outline, with its citations."""

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
        start = statements[-1].end + 1 if statements else 0
        statements.append(
            Statement(
                text=text,
                start=start,
                end=start + len(text),
                citations=(number,),
                verdict="supported",
                support=1.0,
                evidence=line.lesson.title,
                chunk_id=citations[number - 1].hit.chunk.id,
            )
        )
    if not statements:
        return None
    text = "\n".join(statement.text for statement in statements)
    return OutlineAnswer(text=text, citations=tuple(citations), statements=tuple(statements))
