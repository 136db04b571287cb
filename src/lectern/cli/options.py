"""Options that several commands share, so that they mean and say the same everywhere."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs, the last line of stdout.")]
Direct = Annotated[bool, typer.Option("--direct", help="Never go through a running server; fail if one owns the home.")]
Book = Annotated[str | None, typer.Option("--book", help="The book's id; may be left out while only one is indexed.")]
BookArgument = Annotated[
    str | None, typer.Argument(metavar="[BOOK]", help="The book's id; may be left out while only one is indexed.")
]
Tier = Annotated[int | None, typer.Option("--tier", help="Hardware tier of the reader, 1 to 4: this tier or lower.")]
Module = Annotated[str | None, typer.Option("--module", help="Only this module.")]
Levels = Annotated[list[str] | None, typer.Option("--level", help="Proficiency level (A1 … C2); may be repeated.")]
Layer = Annotated[str | None, typer.Option("--layer", help="Teaching layer (L1 … L4).")]
ChapterMin = Annotated[int | None, typer.Option("--chapter-min", help="First chapter.")]
ChapterMax = Annotated[int | None, typer.Option("--chapter-max", help="Last chapter.")]
Lesson = Annotated[int | None, typer.Option("--lesson", help="Only lessons with this number.")]


def one_book(argument: str | None, option: str | None) -> str | None:
    """The book of a command that takes it as its argument, or by the option that every other command has."""
    if argument and option and argument != option:
        raise typer.BadParameter(f"{argument!r} and --book {option!r} are two books; name one")
    return argument or option


def scope_of(**given: Any) -> dict[str, Any]:  # noqa: ANN401  # option values as typer gives them
    """The options that narrow a question, under the names that requests use."""
    names = {
        "book": "book_id",
        "tier": "hardware_tier_filter",
        "module": "module_filter",
        "chapter_min": "chapter_min",
        "chapter_max": "chapter_max",
        "lesson": "lesson_filter",
        "level": "proficiency_levels",
        "layer": "layer_filter",
    }
    scope = {names[option]: value for option, value in given.items()}
    return {**scope, "proficiency_levels": scope.get("proficiency_levels") or None}  # typer's "not given" is a list
