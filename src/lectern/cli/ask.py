"""`lectern ask`: a question, answered from the book; exit 4 when it is refused."""

from __future__ import annotations

from typing import Annotated, Any

import typer

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
from lectern.cli.remote import only
from lectern.cli.render import carry, print_json, show_refusal, show_sources

REFUSED = 4


def command(  # noqa: PLR0913  # one parameter an option
    question: Annotated[str, typer.Argument(help="The question, 1 to 1000 characters.")],
    book: Book = None,
    top_k: Annotated[
        int | None, typer.Option("--top-k", help="How many passages to read, 1 to 100; default: AGENT_TOP_K, else 5.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", help="The least similarity (cosine) of a passage, 0 to 1; default: the embedder's."
        ),
    ] = None,
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
    """Answer a question from the book, with citations; exit 4 where the book does not say."""
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
    params = {"text": question, "top_k": top_k, "similarity_threshold": threshold, "scope": scope}
    reply = carry(only("ask", params, direct=direct))
    if json:
        print_json(reply)
    else:
        _show(reply)
    if not reply["should_answer"]:
        raise typer.Exit(REFUSED)


def _show(reply: dict[str, Any]) -> None:
    typer.echo(reply["response"])
    if reply["should_answer"]:
        typer.echo()
        show_sources(reply)
    else:
        show_refusal(reply)
