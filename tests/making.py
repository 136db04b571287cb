"""Values for tests, made in one line each."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from lectern.domain.books import LessonPlace, LessonSource, Manifest, Survey
from lectern.domain.chunks import Chunk, IndexedChunk, Stamp, StampedChunk, chunk_id, content_hash, parent_doc_id
from lectern.domain.evidence import Hit
from lectern.domain.jobs import IngestionRecord
from lectern.rendering.answers import answer_html
from lectern.text.page_markdown import MAX_SOURCES

DIMENSIONS = 8
MOMENT = "2026-01-01T00:00:00.000Z"
STAMP = Stamp(
    version=1, created_at=MOMENT, updated_at=MOMENT, embedded_at=MOMENT, embedding_model=f"test/tiny/{DIMENSIONS}"
)


def place(book_id: str = "book", module: str = "m", chapter: int = 1, lesson: int = 1) -> LessonPlace:
    """A lesson's place."""
    return LessonPlace(book_id=book_id, module=module, chapter=chapter, lesson=lesson)


def chunk(text: str, where: LessonPlace | None = None, **changes: object) -> Chunk:
    """A chunk that is alone in its lesson, unless told otherwise."""
    where = where or place()
    words = len(text.split())
    new_chunk = Chunk(
        id=chunk_id(where, content_hash(text)),
        text=text,
        book_id=where.book_id,
        module=where.module,
        chapter=where.chapter,
        lesson=where.lesson,
        source_file=f"{where.module}/{where.chapter:02}/{where.lesson:02}.md",
        parent_doc_id=parent_doc_id(where),
        section_title="Section",
        trail=("Lesson", "Section"),
        breadcrumb="M › C › Lesson › Section",
        line_start=1,
        line_end=3,
        hardware_tier=1,
        proficiency_level="A2",
        layer="L1",
        chunk_index=0,
        total_chunks=1,
        prev_chunk_id=None,
        next_chunk_id=None,
        page_title="Lesson",
        module_title="M",
        chapter_title="C",
        lesson_title="Lesson",
        sections=(),
        url="/m/c/lesson#section",
        content_hash=content_hash(text),
        source_file_hash=content_hash(text),
        word_count=words,
        token_count=round(words * 1.3),
        char_count=len(text),
    )
    return replace(new_chunk, **changes)  # type: ignore[arg-type]  # fields by name


def unit_vector(seed: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A direction that depends on its seed alone."""
    source = random.Random(seed)
    raw = [source.gauss(0, 1) for _ in range(dimensions)]
    length = sum(value * value for value in raw) ** 0.5
    return [value / length for value in raw]


def indexed(text_chunk: Chunk, *vectors: list[float]) -> IndexedChunk:
    """A chunk ready for the index."""
    return IndexedChunk(
        stored=StampedChunk(chunk=text_chunk, stamp=STAMP), vectors=tuple(vectors) or (unit_vector(text_chunk.text),)
    )


def hit(text_chunk: Chunk, similarity: float = 0.6, rank: int = 1) -> Hit:
    """A hit as a search would give it."""
    return Hit(
        chunk=text_chunk,
        rank=rank,
        score=similarity,
        similarity=similarity,
        relevance=similarity,
        lexical=similarity,
        windows=(unit_vector(text_chunk.text),),
    )


def source(name: str, lesson: int = 1, content: str = "x", where: LessonPlace | None = None) -> LessonSource:
    """A lesson on disk."""
    return LessonSource(
        source_file=name,
        source_file_hash=content_hash(content),
        place=where or place(lesson=lesson),
        page_title=name,
        module_title="M",
        chapter_title="C",
        lesson_title=name,
        url=f"/{name}",
        hardware_tier=1,
        proficiency_level="A2",
        layer="L1",
        digest=content_hash(f"{content}{where or lesson}"),
    )


def record(lesson: LessonSource, chunk_ids: tuple[str, ...] = ("c",)) -> IngestionRecord:
    """What the ledger has of that lesson."""
    return IngestionRecord(
        source_file=lesson.source_file,
        file_hash=lesson.source_file_hash,
        digest=lesson.digest,
        place=lesson.place,
        parent_doc_id=parent_doc_id(lesson.place),
        chunk_ids=chunk_ids,
        ingested_at=MOMENT,
        page_title=lesson.page_title,
        lesson_title=lesson.lesson_title,
        chapter_title=lesson.chapter_title,
        module_title=lesson.module_title,
        url=lesson.url,
        payload_digest="d",
    )


def surveyed(*lessons: LessonSource) -> Survey:
    """A folder with just these lessons."""
    manifest = Manifest(book_id="book", title="Book")
    return Survey(manifest=manifest, lessons=lessons, problems=(), files_discovered=len(lessons))


def numbers_in(text: str) -> list[int]:
    """The numbers that a page shows as citations of a text, in the order of their first mention."""
    numbers = re.findall(r'data-source="(\d+)"', answer_html(text, sources=MAX_SOURCES))
    return list(dict.fromkeys(map(int, numbers)))
