"""A book's table of contents: modules, their chapters, their lessons, in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lectern.domain.books import Manifest, natural
from lectern.domain.jobs import IngestionRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineLesson:
    """One lesson of the outline."""

    lesson: int
    title: str
    url: str
    parent_doc_id: str
    source_file: str
    chunk_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineChapter:
    """A chapter with its lessons; chapter 0 is the module's own overview."""

    chapter: int
    title: str
    lessons: tuple[OutlineLesson, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineModule:
    """A module with its chapters."""

    module: str
    title: str
    chapters: tuple[OutlineChapter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """A whole book."""

    book_id: str
    title: str
    modules: tuple[OutlineModule, ...]


def outline_of(manifest: Manifest, records: Iterable[IngestionRecord]) -> Outline:
    """The outline of what is indexed: the manifest's order of modules first, then that of the paths."""
    slugs = [module.slug for module in manifest.modules]
    ordered = sorted(records, key=lambda record: natural(record.source_file))
    modules: dict[str, list[IngestionRecord]] = {slug: [] for slug in slugs}
    for record in ordered:
        modules.setdefault(record.place.module, []).append(record)
    return Outline(
        book_id=manifest.book_id,
        title=manifest.title,
        modules=tuple(_module(slug, group) for slug, group in modules.items() if group),
    )


def _module(slug: str, records: Sequence[IngestionRecord]) -> OutlineModule:
    chapters: dict[int, list[IngestionRecord]] = {}
    for record in sorted(records, key=lambda record: (record.place.chapter, record.place.lesson)):
        chapters.setdefault(record.place.chapter, []).append(record)
    return OutlineModule(
        module=slug,
        title=records[0].module_title,
        chapters=tuple(
            OutlineChapter(
                chapter=number, title=group[0].chapter_title, lessons=tuple(_lesson(record) for record in group)
            )
            for number, group in chapters.items()
        ),
    )


def _lesson(record: IngestionRecord) -> OutlineLesson:
    return OutlineLesson(
        lesson=record.place.lesson,
        title=record.lesson_title,
        url=record.url,
        parent_doc_id=record.parent_doc_id,
        source_file=record.source_file,
        chunk_count=record.chunk_count,
    )
