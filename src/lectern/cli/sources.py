"""How a reply's sources, and a refusal's advice, look on a terminal."""

from __future__ import annotations

from typing import Any

import typer


def show_sources(reply: dict[str, Any]) -> None:
    """The numbered sources of an answer, and how sure it is."""
    for source in reply["sources"]:
        typer.echo(f"[{source['number']}] {source['breadcrumb']}")
        published = source["url"].startswith("http")
        where = source["url"] if published else f"{source['source_file']}:{source['line_start']}"
        typer.echo(f"    {where}")
    typer.echo(f"\n{reply['confidence_level']} confidence ({reply['confidence']:.2f}) · {reply['model']}")


def show_refusal(reply: dict[str, Any]) -> None:
    """Where else a refused reader may look."""
    for lesson in reply["outside_scope"]:
        typer.echo(f"\nOutside your filters the book covers it: {lesson['title']}  {lesson['url']}")
    if reply["other_books"]:
        typer.echo(f"\nAnother book covers it: {', '.join(reply['other_books'])}")
    if reply["nearest"] and not reply["outside_scope"]:
        typer.echo("\nNearest lessons:")
        for lesson in reply["nearest"]:
            typer.echo(f"  {lesson['title']}  {lesson['url']}")
