"""What a reader sees of a book before the first question: what it is about, what can be filtered, what to ask."""

from __future__ import annotations

from dataclasses import dataclass

from lectern.domain.books import BookEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleChoice:
    """A module that a reader can choose."""

    module: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChapterChoice:
    """A chapter that a reader can choose."""

    module: str
    chapter: int
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterChoices:
    """The values that the lessons of a book have; empty where all lessons have the same."""

    tiers: tuple[int, ...]
    levels: tuple[str, ...]
    layers: tuple[str, ...]
    modules: tuple[ModuleChoice, ...]
    chapters: tuple[ChapterChoice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookDetails:
    """A book as a reader meets it."""

    entry: BookEntry
    description: str  # plain text, a few sentences at most
    language: str
    lessons: int
    filters: FilterChoices
    suggestions: tuple[str, ...]  # first questions, which the book answers
