"""`lectern search`: find passages of a book."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lectern.cli.acting import only
from lectern.cli.options import (
    Book,
    ChapterMax,
    ChapterMin,
    Direct,
    Json,
    Layer,
    Lesson,
    Levels,
    Module,
    Tier,
    scope_of,
)
from lectern.cli.render import carry, fail, first_words, print_json

MODES = ("hybrid", "dense", "lexical")


def command(  # noqa: PLR0913  # one parameter an option
    text: Annotated[str, typer.Argument(help="What to look for, 3 to 1000 characters.")],
    book: Book = None,
    limit: Annotated[int, typer.Option("--limit", help="How many results, 1 to 20.")] = 5,
    mode: Annotated[str, typer.Option("--mode", help="hybrid, dense or lexical.")] = "hybrid",
    tier: Tier = None,
    module: Module = None,
    chapter_min: ChapterMin = None,
    chapter_max: ChapterMax = None,
    lesson: Lesson = None,
    level: Levels = None,
    layer: Layer = None,
    *,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Find the passages of a book that are nearest to a text."""
    if mode not in MODES:
        fail(f"--mode must be one of {', '.join(MODES)}, not {mode!r}", 2)
    scope = scope_of(
        book=book,
        tier=tier,
        module=module,
        chapter_min=chapter_min,
        chapter_max=chapter_max,
        lesson=lesson,
        level=level,
        layer=layer,
    )
    found = carry(only("search", {"text": text, "limit": limit, "mode": mode, "scope": scope}, direct=direct))
    if json:
        print_json(found)
    else:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    if not found["results"]:
        typer.echo("Nothing was found in that scope.")
    for result in found["results"]:
        typer.secho(f"{result['rank']}. {result['breadcrumb']}", bold=True)
        typer.echo(f"   {result['url']}  (score {result['score']:.2f}, similarity {result['similarity']:.2f})")
        typer.echo(f"   {result['source_file']}  lesson {result['parent_doc_id']}")
        typer.echo(f"   {first_words(result['text'])}\n")
