"""The details of indexed books: description, language, filters and first questions. They are read from the index when
they are first needed, and again when the book has changed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lectern.answering.heading_questions import FORMS, heading_questions, spread
from lectern.app.library import BookLibrary
from lectern.domain.book_details import BookDetails, ChapterChoice, FilterChoices, ModuleChoice
from lectern.domain.books import LAYERS, LEVELS, BookEntry
from lectern.domain.chunks import Chunk
from lectern.domain.outline import Outline, OutlineLesson, outline_of
from lectern.domain.scope import ChunkFilter
from lectern.reading.headings import MAX_INLINE, plain
from lectern.text.blocks import blocks_of
from lectern.text.pieces import split_sentences
from lectern.text.strings import Strings, strings_of

MAX_DESCRIPTION = 300  # characters
MIN_PARAGRAPH_WORDS = 8  # of a paragraph that describes a book
MAX_SUGGESTIONS, MAX_TRIED = 6, 18  # first questions that are given, and that are tried for it

_LEFT_MARKUP = re.compile(r"[*_`\[\]]+(?=\W|$)|(?<!\w)[*_`\[\]]+")  # of a sentence that was cut

T = TypeVar("T")
Version = tuple[BookEntry, int]
Answered = Callable[[Sequence[str], str], AsyncIterator[str]]  # those of some questions that a book answers


@dataclass(slots=True)
class DetailedBooks:
    """The details of each book, for as long as the book stays as it is."""

    library: BookLibrary
    answered: Answered
    _details: dict[str, tuple[Version, asyncio.Task[BookDetails]]] = field(default_factory=dict)

    async def strings(self, entry: BookEntry) -> Strings:
        """The sentences of a book's language."""
        return strings_of(entry.manifest.language)

    async def first_questions(self, entry: BookEntry) -> tuple[str, ...]:
        """Questions that the book answers, to begin with."""
        return (await self.details(entry)).suggestions

    async def details(self, entry: BookEntry) -> BookDetails:
        """The details of a book. Callers at the same time share the work, which goes on if one of them leaves."""
        return await asyncio.shield(self.prepare(entry))

    def prepare(self, entry: BookEntry) -> asyncio.Task[BookDetails]:
        """Begin to read the details of a book, unless they are known."""
        book_id, version = entry.manifest.book_id, _version(entry)
        cached = self._details.get(book_id)
        if cached is None or cached[0] != version or _has_failed(cached[1]):
            cached = self._details[book_id] = (version, asyncio.create_task(self._read(entry)))
            cached[1].add_done_callback(_has_failed)  # an error that nobody waited for is not logged by asyncio
        return cached[1]

    async def close(self) -> None:
        """End work that nobody waits for any more."""
        tasks = [task for _, task in self._details.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, entry: BookEntry) -> BookDetails:
        book_id = entry.manifest.book_id
        records = (await self.library.ledger.records(book_id, entry.collection_name)).values()
        outline = outline_of(entry.manifest, records)
        lessons = [lesson for module in outline.modules for chapter in module.chapters for lesson in chapter.lessons]
        index = (await self.library.collections.serving(entry)).index
        stored = await index.read(lambda view: view.chunks(ChunkFilter(book_id=book_id)))
        chunks = _in_order([stamped.chunk for stamped in stored], lessons)
        language = entry.manifest.language
        return BookDetails(
            entry=entry,
            description=description_of(entry.manifest.description or first_paragraph(chunks)),
            language=language,
            lessons=len(lessons),
            filters=filter_choices(chunks, outline),
            suggestions=await self._suggestions(book_id, chunks, strings_of(language)),
        )

    async def _suggestions(self, book_id: str, chunks: Sequence[Chunk], strings: Strings) -> tuple[str, ...]:
        """First questions from all modules that the book really answers; headings that are questions come first."""
        forms = {question.text: question.form for question in spread(heading_questions(chunks, strings))[:MAX_TRIED]}
        chosen: list[str] = []
        async for question in self.answered(list(forms), book_id):
            chosen.append(question)
            if len(chosen) == MAX_SUGGESTIONS:
                break
        return tuple(sorted(chosen, key=lambda question: FORMS.index(forms[question])))


def filter_choices(chunks: Iterable[Chunk], outline: Outline) -> FilterChoices:
    """The values that can be filtered by, without those that all lessons share."""
    tiers, levels, layers = set(), set(), set()
    for chunk in chunks:
        tiers.add(chunk.hardware_tier)
        levels.add(chunk.proficiency_level)
        layers.add(chunk.layer)
    modules = [module for module in outline.modules if module.chapters]
    chapters = [
        ChapterChoice(module=module.module, chapter=chapter.chapter, title=chapter.title)
        for module in modules
        for chapter in module.chapters
        if chapter.chapter  # chapter 0 is the module's own overview
    ]
    return FilterChoices(
        tiers=_several(sorted(tiers)),
        levels=_several([level for level in LEVELS if level in levels]),
        layers=_several([layer for layer in LAYERS if layer in layers]),
        modules=_several([ModuleChoice(module=module.module, title=module.title) for module in modules]),
        chapters=_several(chapters),
    )


def first_paragraph(chunks: Iterable[Chunk]) -> str:
    """The first paragraph of a book, as it is written; empty if it has none."""
    for chunk in chunks:
        for block in blocks_of(chunk.text):
            if block.kind == "paragraph" and len(block.text.split()) >= MIN_PARAGRAPH_WORDS:
                return block.text
    return ""


def description_of(text: str) -> str:
    """The first sentences of a text, without Markdown, in at most `MAX_DESCRIPTION` characters."""
    description = ""
    for sentence in split_sentences(" ".join(text.split())):
        words = " ".join(_LEFT_MARKUP.sub("", plain(_cut(sentence, MAX_INLINE))).split())
        longer = f"{description} {words}".strip()
        if len(longer) > MAX_DESCRIPTION:
            return description or _cut(longer, MAX_DESCRIPTION)
        description = longer
    return description


def _cut(text: str, length: int) -> str:
    """The text, cut at a word if it is too long."""
    if len(text) <= length:
        return text
    return f"{text[: length - 1].rpartition(' ')[0] or text[: length - 1]}…"


def _in_order(chunks: Iterable[Chunk], lessons: Sequence[OutlineLesson]) -> list[Chunk]:
    """Chunks in the order in which a reader meets them."""
    place = {lesson.parent_doc_id: number for number, lesson in enumerate(lessons)}
    return sorted(chunks, key=lambda chunk: (place.get(chunk.parent_doc_id, len(place)), chunk.chunk_index))


def _several(values: Sequence[T]) -> tuple[T, ...]:
    return tuple(values) if len(values) > 1 else ()


def _version(entry: BookEntry) -> Version:
    return entry, entry.epoch


def _has_failed(task: asyncio.Task[BookDetails]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
