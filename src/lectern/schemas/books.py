"""Books and lessons in requests and responses."""

from __future__ import annotations

import base64
import binascii
from typing import Literal, Self

from pydantic import ConfigDict, Field

from lectern.domain.book_details import BookDetails, ChapterChoice, FilterChoices, ModuleChoice
from lectern.domain.books import BookEntry
from lectern.domain.chunks import Chunk, StampedChunk
from lectern.domain.errors import BadInput
from lectern.domain.evidence import Around
from lectern.domain.outline import Outline
from lectern.schemas.chunks import StoredChunk
from lectern.schemas.common import Response
from lectern.schemas.search import Neighbour


class BookOut(Response):
    """A book as `GET /books` lists it."""

    book_id: str
    title: str
    total_chunks: int
    collection_name: str
    fingerprint: str
    last_full_ingest: str | None
    last_incremental_update: str | None
    default: bool = Field(description="Whether a request that names no book is about this one.")

    @classmethod
    def of(cls, entry: BookEntry, default_id: str | None) -> Self:
        """A ledger entry as a response, which says whether it is the default book."""
        return cls(
            book_id=entry.manifest.book_id,
            title=entry.manifest.title,
            total_chunks=entry.total_chunks,
            collection_name=entry.collection_name,
            fingerprint=entry.fingerprint,
            last_full_ingest=entry.last_full_ingest,
            last_incremental_update=entry.last_incremental_update,
            default=entry.manifest.book_id == default_id,
        )


class ModuleChoiceOut(Response):
    """A module that can be chosen."""

    module: str
    title: str


class ChapterChoiceOut(Response):
    """A chapter that can be chosen."""

    module: str
    chapter: int
    title: str


class FilterChoicesOut(Response):
    """The values that filters may have; a list is empty where the whole book has one value."""

    hardware_tiers: list[int]
    proficiency_levels: list[str]
    layers: list[str]
    modules: list[ModuleChoiceOut]
    chapters: list[ChapterChoiceOut]

    @classmethod
    def of(cls, choices: FilterChoices) -> Self:
        """The choices under the names that requests use."""
        return cls(
            hardware_tiers=list(choices.tiers),
            proficiency_levels=list(choices.levels),
            layers=list(choices.layers),
            modules=[ModuleChoiceOut.model_validate(module, from_attributes=True) for module in choices.modules],
            chapters=[ChapterChoiceOut.model_validate(chapter, from_attributes=True) for chapter in choices.chapters],
        )

    def choices(self) -> FilterChoices:
        """The response as a value."""
        return FilterChoices(
            tiers=tuple(self.hardware_tiers),
            levels=tuple(self.proficiency_levels),
            layers=tuple(self.layers),
            modules=tuple(ModuleChoice(**module.model_dump()) for module in self.modules),
            chapters=tuple(ChapterChoice(**chapter.model_dump()) for chapter in self.chapters),
        )


class BookDetailsOut(BookOut):
    """A book as a reader meets it."""

    description: str = Field(description="The author's words, else the book's first paragraph; plain text.")
    language: str = Field(description="As the book declares it, or as its text is in.")
    lessons: int = Field(description="How many lessons are indexed.")
    filters: FilterChoicesOut
    suggestions: list[str] = Field(description="First questions, which the book answers.")

    @classmethod
    def of_details(cls, details: BookDetails, default_id: str | None) -> Self:
        """The details as a response."""
        return cls(
            **BookOut.of(details.entry, default_id).model_dump(),
            description=details.description,
            language=details.language,
            lessons=details.lessons,
            filters=FilterChoicesOut.of(details.filters),
            suggestions=list(details.suggestions),
        )


class LessonOut(Response):
    """A whole lesson."""

    parent_doc_id: str
    book_id: str
    title: str
    breadcrumb: str
    source_file: str
    url: str
    chunks: list[Neighbour]

    @classmethod
    def of(cls, stored: list[StampedChunk]) -> Self:
        """The lesson that these chunks make up."""
        first = stored[0].chunk
        return cls(
            parent_doc_id=first.parent_doc_id,
            book_id=first.book_id,
            title=first.lesson_title,
            breadcrumb=" › ".join(dict.fromkeys([first.module_title, first.chapter_title, first.lesson_title])),
            source_file=first.source_file,
            url=first.url.partition("#")[0],
            chunks=[Neighbour.of(stamped.chunk) for stamped in stored],
        )


class HeadingOut(Response):
    """A heading of a lesson."""

    level: int
    title: str
    anchor: str = Field(description='The anchor on the site and in `html`; "" if the heading has none.')


class ChunkLinesOut(Response):
    """The lines of a chunk in the lesson's file."""

    id: str
    line_start: int
    line_end: int


class LessonLinkOut(Response):
    """A lesson beside another one."""

    parent_doc_id: str
    title: str


class LessonPageOut(Response):
    """A lesson to read in a browser."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    parent_doc_id: str
    book_id: str
    title: str
    breadcrumb: str
    url: str
    source_file: str
    from_: Literal["file", "index"] = Field(
        alias="from",
        description="`index` if the file is gone or has changed since it was indexed: the text is the indexed one.",
    )
    html: str = Field(description="Sanitised. Blocks have `data-lines`: their lines in the file, such as `12-15`.")
    headings: list[HeadingOut]
    chunks: list[ChunkLinesOut]
    previous: LessonLinkOut | None
    next: LessonLinkOut | None


class ContextOut(Response):
    """A chunk between its neighbours, in the lesson's order."""

    book_id: str
    parent_doc_id: str
    before: list[Neighbour]
    chunk: Neighbour
    after: list[Neighbour]

    @classmethod
    def of(cls, chunk: Chunk, around: Around) -> Self:
        """The chunk and its neighbours."""
        return cls(
            book_id=chunk.book_id,
            parent_doc_id=chunk.parent_doc_id,
            before=[Neighbour.of(chunk) for chunk in around.before],
            chunk=Neighbour.of(chunk),
            after=[Neighbour.of(chunk) for chunk in around.after],
        )


class ChunkPage(Response):
    """A page of a book's chunks, by `source_file` and `chunk_index`."""

    chunks: list[StoredChunk]
    next_cursor: str | None

    @classmethod
    def of(cls, stored: list[StampedChunk], limit: int, cursor: str | None) -> Self:
        """The page that begins after the cursor, wherever that chunk is now."""
        after = _place(cursor) if cursor else ("", -1)
        rest = [stamped for stamped in stored if (stamped.chunk.source_file, stamped.chunk.chunk_index) > after]
        page = rest[:limit]
        more = len(rest) > limit
        return cls(
            chunks=[StoredChunk.of(stamped) for stamped in page],
            next_cursor=_cursor(page[-1].chunk) if more else None,
        )


def _cursor(chunk: Chunk) -> str:
    return base64.urlsafe_b64encode(f"{chunk.chunk_index}:{chunk.source_file}".encode()).decode()


def _place(cursor: str) -> tuple[str, int]:
    try:
        index, _, file = base64.b64decode(cursor, altchars=b"-_", validate=True).decode().partition(":")
        return file, int(index)
    except (ValueError, binascii.Error):
        raise BadInput("this cursor was not given out here; begin without one", field="cursor") from None


class OutlineLessonOut(Response):
    """One lesson of an outline."""

    lesson: int
    title: str
    url: str
    parent_doc_id: str
    source_file: str
    chunk_count: int


class OutlineChapterOut(Response):
    """A chapter; chapter 0 is the module's own overview."""

    chapter: int
    title: str
    lessons: list[OutlineLessonOut]


class OutlineModuleOut(Response):
    """A module with its chapters."""

    module: str
    title: str
    chapters: list[OutlineChapterOut]


class OutlineOut(Response):
    """A book's table of contents."""

    book_id: str
    title: str
    modules: list[OutlineModuleOut]

    @classmethod
    def of(cls, outline: Outline) -> Self:
        """An outline as a response."""
        return cls.model_validate(outline, from_attributes=True)
