"""Options that several commands share, so that they mean and say the same everywhere."""

from __future__ import annotations

from typing import Annotated

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
