"""Answers questions about the book itself, without a search: from its outline, its front page and the openings of its
lessons, word for word. What they do not answer is left to retrieval."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field

from lectern.answering.book_parts import BookParts, Part
from lectern.answering.book_questions import BookQuestion, BookTopic, book_questions
from lectern.answering.citations import citation
from lectern.answering.desk import TurnDesk
from lectern.answering.front_pages import (
    SPEAKS_OF_BOOK,
    file_stem,
    front_pages,
    pages_for_the_beginning,
    said_of_book,
    starting_pages,
)
from lectern.answering.lesson_openings import Excerpt, opening_paragraph, opening_sentence, section_openings
from lectern.answering.outline_answers import (
    Line,
    about_structure,
    count_sentence,
    shorten,
    structure_lines,
)
from lectern.domain.evidence import Hit
from lectern.domain.outline import OutlineLesson
from lectern.domain.replies import Citation, Statement
from lectern.text.strings import Strings

MAX_PARTS = 12  # whose openings are quoted in one answer; reading more would be slow
FIRST_LESSONS = 3  # that a reader who asks where to start is shown
MAX_SAID = 8  # paragraphs and items of a front page that are quoted
MAX_SAME_NUMBER = 4  # parts that share a number, in a book that counts anew in every module
MAX_READ = 40  # lessons that are read for one answer: a reader's filters may hide many


@dataclass(frozen=True, slots=True, kw_only=True)
class BookAnswer:
    """An answer about the book, with its citations."""

    text: str
    citations: tuple[Citation, ...]
    statements: tuple[Statement, ...]
    is_structural: bool  # it says what the outline says; otherwise, what pages seem to say of the book


async def book_answer(question: str, desk: TurnDesk, strings: Strings) -> BookAnswer | None:
    """The answer to a question about the book or its structure, or None."""
    title = desk.scope.entry.manifest.title
    asked = book_questions(question, title)
    if not asked and not about_structure(question):
        return None
    outline = await desk.library.outline(desk.scope.book_id)
    pages = _Pages(desk)
    answers = _Answers(BookParts(outline), pages, strings)
    lines = structure_lines(question, outline, strings)
    is_structural = bool(lines)
    if len(lines) == 1 and lines[0].lesson and (excerpt := opening_sentence(await pages.read(lines[0].lesson))):
        lines.append(_quoted(excerpt))  # a title alone says little
    for one in [] if lines else asked:
        if lines := await answers.lines(one):
            is_structural = bool(one.part)
            break
    return await _written(shorten(_once(lines), strings), pages, is_structural=is_structural)


async def book_opening(desk: TurnDesk) -> str:
    """A sentence that says what the book is about: the author's description, or the first one of its front page."""
    if description := desk.scope.entry.manifest.description:
        return description
    pages = _Pages(desk)
    for lesson in front_pages(BookParts(await desk.library.outline(desk.scope.book_id))):
        if excerpt := opening_sentence(await pages.read(lesson)):
            return excerpt.text
    return ""


@dataclass(slots=True)
class _Pages:
    """Reads lessons within the reader's scope, each once."""

    desk: TurnDesk
    _known: dict[str, list[Hit]] = field(default_factory=dict)

    async def read(self, lesson: OutlineLesson) -> list[Hit]:
        """The passages of a lesson that this reader may see."""
        doc = lesson.parent_doc_id
        if doc not in self._known:
            self._known[doc] = [] if len(self._known) >= MAX_READ else await self.desk.passages_of(doc)
        return self._known[doc]

    async def visible(self, lessons: Iterable[OutlineLesson]) -> AsyncIterator[tuple[OutlineLesson, list[Hit]]]:
        """The lessons that this reader may see, with their passages."""
        for lesson in lessons:
            if hits := await self.read(lesson):
                yield lesson, hits


class _Answers:
    """A method for each kind of question; no lines if the book does not say it there."""

    def __init__(self, book: BookParts, pages: _Pages, strings: Strings) -> None:
        self._book = book
        self._pages = pages
        self._strings = strings
        self._manifest = pages.desk.scope.entry.manifest

    async def lines(self, question: BookQuestion) -> list[Line]:
        """The lines of the answer to a question."""
        if question.halves:
            return [line for half in question.halves for line in await self.lines(half)]
        if question.part:
            parts = self._parts_named(question)
            return await (self._part_author(parts) if question.topic == "author" else self._parts(parts))
        match question.topic:
            case "about":
                lines = await self._about()
            case "start":
                lines = await self._start()
            case "organisation":
                lines = [*await self._said("organisation"), *self._contents()]
            case "length":
                lines = [*self._counts(), *await self._said("length")]
            case topic:
                lines = await self._said(topic)
        return lines

    def _parts_named(self, question: BookQuestion) -> list[Part]:
        if question.part_is_title:
            part = self._book.exact(question.part)
            return [part] if part else []
        return self._book.named(question.part) or [part for part in [self._book.exact(question.part)] if part]

    async def _about(self) -> list[Line]:
        """What the author says of the book, the paragraph of the front page that speaks of it, and the contents."""
        lines: list[Line] = []
        async for lesson, hits in self._pages.visible(front_pages(self._book)):
            if description := self._manifest.description:
                lines.append(Line(text=f"**{self._manifest.title}**: {description}", lesson=lesson))
            if excerpt := opening_paragraph(hits, self._speaks_of_book()):
                lines.append(_quoted(excerpt))
            if lines:
                break
        return [*lines, *self._contents()]

    def _speaks_of_book(self) -> re.Pattern[str]:
        """Words for the book, among them its title."""
        title = re.escape(re.sub(r"^The ", "", self._manifest.title))
        return re.compile(rf"{SPEAKS_OF_BOOK}|\b{title}(?!\w)", re.IGNORECASE)

    async def _start(self) -> list[Line]:
        """The book's own advice with the lessons that it names; then pages such as "Installation". Where nothing is
        said and no part is for the beginning, the first lessons in order come before these."""
        advice = (await self._said("start") or await self._said("start", self._overviews()))[:1]
        begun: set[str] = {line.excerpt.hit.chunk.parent_doc_id for line in advice if line.excerpt}
        said = " ".join(line.text for line in advice).casefold()
        named = [page for page in self._book.pages if re.search(rf"\b{re.escape(page.title.casefold())}\b", said)]
        lessons = [part.page for part in self._book.lessons]
        groups = (
            ("named_lessons", named),
            ("first_lessons", [] if named or pages_for_the_beginning(self._book) else lessons),
            ("starting_pages", starting_pages(self._book)),
        )
        lines = list(advice)
        for key, pages in groups:
            entries = await self._entries(page for page in pages if page.parent_doc_id not in begun)
            begun |= {entry.lesson.parent_doc_id for entry in entries if entry.lesson}
            lines += [Line(text=self._strings(f"book.{key}")), *entries] if entries else []
        return lines

    async def _entries(self, pages: Iterable[OutlineLesson]) -> list[Line]:
        """The first few of some pages, with their opening sentences."""
        entries: list[Line] = []
        async for page, hits in self._pages.visible(pages):
            entries.append(_entry(page.title, page, opening_sentence(hits)))
            if len(entries) == FIRST_LESSONS:
                break
        return entries

    def _overviews(self) -> list[OutlineLesson]:
        """The overview pages of modules, and indexes."""
        modules = [module.overview for module in self._book.modules if module.overview]
        return [*modules, *(page for page in self._book.pages if "index" in file_stem(page))][:MAX_PARTS]

    def _contents(self) -> list[Line]:
        """How many modules or chapters there are, and which."""
        level = self._book.levels[0]
        parts = self._book.of(level)
        if len(parts) <= 1:
            return []
        head = Line(text=count_sentence(parts, level, self._strings), lesson=parts[0].page)
        return [head, *(Line(text=f"- {_with_children(part)}", lesson=part.page) for part in parts)]

    def _counts(self) -> list[Line]:
        """How many modules, chapters and lessons there are."""
        return [
            Line(text=count_sentence(parts, level, self._strings), lesson=parts[0].page)
            for level in self._book.levels
            if (parts := self._book.of(level))
        ]

    async def _said(self, topic: BookTopic, pages: Sequence[OutlineLesson] | None = None) -> list[Line]:
        """What the front pages, or other ones, say of themselves: the words of the first page that does."""
        async for _, hits in self._pages.visible(front_pages(self._book) if pages is None else pages):
            if excerpts := said_of_book(topic, hits)[:MAX_SAID]:
                return [_quoted(excerpt) for excerpt in excerpts]
        return []

    async def _part_author(self, parts: Sequence[Part]) -> list[Line]:
        """What a part says of its authors."""
        async for _, hits in self._pages.visible(lesson for part in parts for lesson in part.lessons[:MAX_PARTS]):
            if excerpts := said_of_book("author", hits)[:1]:
                return [_quoted(excerpt) for excerpt in excerpts]
        return []

    async def _parts(self, parts: Sequence[Part]) -> list[Line]:
        """A summary of a part; of several parts that the same name stands for, their openings."""
        if len(parts) > MAX_SAME_NUMBER:
            return []
        if len(parts) != 1:
            return [await self._entry_of(part) for part in parts]
        part = parts[0]
        is_single = len(part.lessons) == 1
        hits = await self._pages.read(part.page) if part.overview or is_single else []
        opening = opening_paragraph(hits)
        title = _entry(part.title, part.page, opening, item=False)
        if is_single:
            sections = [
                Line(text=f"- **{excerpt.heading}**: {excerpt.text}", excerpt=excerpt)
                for excerpt in section_openings(hits)
                if opening is None or excerpt.text not in opening.text
            ]
            return [title, *sections] if opening or sections else []
        return [title, *[await self._entry_of(child) for child in part.children]]

    async def _entry_of(self, part: Part) -> Line:
        """A part with its opening sentence."""
        for lesson in part.lessons[:2]:
            if excerpt := opening_sentence(await self._pages.read(lesson)):
                return _entry(part.title, lesson, excerpt)
        return _entry(part.title, part.page, None)


def _entry(title: str, lesson: OutlineLesson, excerpt: Excerpt | None, *, item: bool = True) -> Line:
    """A title with words of its lesson."""
    text = f"**{title}**: {excerpt.text}" if excerpt else f"**{title}**"
    return Line(text=f"- {text}" if item else text, lesson=lesson, excerpt=excerpt)


def _quoted(excerpt: Excerpt) -> Line:
    return Line(text=f"- {excerpt.text}" if excerpt.is_item else excerpt.text, excerpt=excerpt)


def _with_children(part: Part) -> str:
    """The title of a module with those of its chapters."""
    chapters = [child.title for child in part.children if child.level == "chapter"]
    return f"**{part.title}**: {'; '.join(chapters)}" if part.level == "module" and chapters else part.title


def _once(lines: Sequence[Line]) -> list[Line]:
    """The lines without repetitions: two questions may have parts of their answer in common."""
    return list({line.text: line for line in lines}.values())


async def _written(lines: Sequence[Line], pages: _Pages, *, is_structural: bool) -> BookAnswer | None:
    """The answer of these lines. A line about a lesson that the reader's filters hide is left out."""
    numbers: dict[str, int] = {}
    citations: list[Citation] = []
    statements: list[Statement] = []
    text = ""
    for line in lines:
        gap = ("\n" if line.text.startswith("- ") else "\n\n") if text else ""
        if line.lesson is None and line.excerpt is None:
            text += f"{gap}{line.text}"
            continue
        hit = line.excerpt.hit if line.excerpt else next(iter(await pages.read(line.lesson)), None)  # type: ignore[arg-type]  # one is set
        if hit is None:
            continue
        quote = line.excerpt.text if line.excerpt else ""
        if hit.chunk.id not in numbers:
            numbers[hit.chunk.id] = len(numbers) + 1
            citations.append(citation(len(numbers), hit, quote))
        number = numbers[hit.chunk.id]
        start, marked = len(text) + len(gap), f"{line.text} [{number}]"
        text += f"{gap}{marked}"
        statements.append(
            Statement(
                text=marked,
                start=start,
                end=len(text),
                citations=(number,),
                verdict="supported",
                support=1.0,
                evidence=quote or hit.chunk.lesson_title,
                chunk_id=hit.chunk.id,
            )
        )
    if not statements:
        return None
    return BookAnswer(text=text, citations=tuple(citations), statements=tuple(statements), is_structural=is_structural)
