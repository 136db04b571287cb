"""A book on disk: its manifest, the place of each lesson, and what is wrong with its files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, get_args

Site = Literal["docusaurus", "mkdocs", "mdbook", "plain"]
Level = Literal["A1", "A2", "B1", "B2", "C1", "C2"]
Layer = Literal["L1", "L2", "L3", "L4"]

SITES: tuple[str, ...] = get_args(Site)
LEVELS: tuple[str, ...] = get_args(Level)
LAYERS: tuple[str, ...] = get_args(Layer)
TIERS = (1, 2, 3, 4)
TOP_TIER = 4  # a reader with this tier can follow every lesson
_NUMBERS = re.compile(r"(\d+)")
MAIN_MODULE = "main"  # files above every module form this one


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleInfo:
    """A module as the manifest names it."""

    slug: str
    folder: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The values of a lesson whose front matter has none."""

    hardware_tier: int = 1
    proficiency_level: str = "A2"
    layer: str = "L1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`lectern.toml`, or what was inferred without one."""

    book_id: str
    title: str
    base_url: str | None = None
    site: Site = "plain"
    exclude: tuple[str, ...] = ()
    language: str = "en"
    description: str | None = None  # what the author says of the book, here or in the site's configuration
    modules: tuple[ModuleInfo, ...] = ()
    module_aliases: tuple[tuple[str, str], ...] = ()  # other names that filters may use, and the modules they mean
    defaults: Defaults = field(default_factory=Defaults)
    reader_tier: int | None = None  # the filter when a reader names no tier; None: every tier
    max_chapter: int | None = None
    max_lesson: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonPlace:
    """Where a lesson is in the book. If two files have the same place, every further one carries its path, so that
    their ids differ."""

    book_id: str
    module: str
    chapter: int
    lesson: int
    doubled_by: str | None = None  # this lesson's own source_file, where an earlier file has the place already

    def __str__(self) -> str:
        return f"{self.book_id}:{self.module}:{self.chapter}:{self.lesson}"

    @property
    def suffix(self) -> str:
        """What is appended to both id strings of a lesson whose place was taken."""
        return "" if self.doubled_by is None else f":{self.doubled_by}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inclusion:
    """How the files that a lesson includes are found, and what it shows of them. Paths are POSIX paths from the book's
    folder."""

    syntaxes: tuple[str, ...]  # of the directives that the book's site understands
    root: str  # the folder that files are included from
    bases: tuple[str, ...] = ()  # folders that paths in directives begin at
    site_folder: str = "."  # the folder of the site's configuration
    notes: tuple[tuple[str, str], ...] = ()  # names of the notes that the lesson embeds, and their files
    digest: str = ""  # of the lesson's lines with what they include


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonSource:
    """What is known of a lesson before its body is cut into chunks."""

    source_file: str  # POSIX path from the book's folder
    source_file_hash: str  # SHA-256 of the raw bytes
    place: LessonPlace
    page_title: str
    module_title: str
    chapter_title: str
    lesson_title: str
    url: str  # of the page, without an anchor
    hardware_tier: int
    proficiency_level: str
    layer: str
    digest: str  # of everything that reaches this lesson's chunks: bytes, place, titles, url, values, code versions
    inclusion: Inclusion | None = None  # None: it includes nothing
    wiki: bool = False  # its `[[links]]`, comments and block ids are Obsidian's


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One line of the report: what is wrong with a file, where, and how to fix it."""

    file: str
    line: int | None
    message: str  # says what is wrong and how to fix it
    severity: Literal["warning", "error"]  # an error costs the file its place in the index


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A whole folder, read again on every run. Each file is either a lesson here or an error among the problems."""

    manifest: Manifest
    lessons: tuple[LessonSource, ...]
    problems: tuple[Problem, ...]
    files_discovered: int
    files_left_out: tuple[str, ...] = ()  # files that are not part of the book, or that cannot be read as Markdown
    includes: int = 0  # directives whose files are shown
    includes_failed: int = 0
    declared_language: str | None = None  # None: the manifest has none
    samples: tuple[str, ...] = ()  # of the text, to tell its language


def natural(path: str) -> tuple[tuple[tuple[int, int, str], ...], ...]:
    """Path order with numbers sorted as numbers: `lesson-2` comes before `lesson-10`."""
    return tuple(
        tuple((0, int(part), part) if part.isdecimal() else (1, 0, part) for part in _NUMBERS.split(step) if part)
        for step in path.split("/")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BookEntry:
    """What the ledger knows of one book."""

    manifest: Manifest
    source: str  # the folder it was last read from
    bound: bool = False  # a caller named that folder, not the operator: it is read only while LECTERN_BOOKS allows it
    fingerprint: str  # of the embedder that readers are served with
    collection_name: str
    total_chunks: int
    last_full_ingest: str | None
    last_incremental_update: str | None
    epoch: int = field(default=0, compare=False)  # counts committed replacements; a server does not send it
