"""`lectern ask`: answers a question from the book; exits with 4 if it is refused."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lectern.app.commands import Ask
from lectern.cli.options import Direct, Json, with_scope
from lectern.cli.remote import run_one
from lectern.cli.render import run_async, show_doubtful, show_refusal, show_sources
from lectern.cli.terminal import echo, print_json
from lectern.domain.scope import Scope

EXIT_REFUSED = 4


@with_scope
def ask(
    question: Annotated[str, typer.Argument(help="The question, 1 to 1000 characters.")],
    top_k: Annotated[
        int | None, typer.Option("--top-k", help="How many passages to read, 1 to 100; default: AGENT_TOP_K, else 5.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="Lowest relevance of a passage, 0 to 1; default: the embedder's floor."),
    ] = None,
    *,
    scope: Scope,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Answer a question from the book, with citations; exit 4 if the book does not say."""
    command = Ask(text=question, scope=scope, top_k=top_k, similarity_threshold=threshold)
    reply = run_async(run_one(command, direct=direct))
    if json:
        print_json(reply)
    else:
        _show(reply)
    if not reply["should_answer"]:
        raise typer.Exit(EXIT_REFUSED)


def _show(reply: dict[str, Any]) -> None:
    echo(reply["response"])
    if reply["should_answer"]:
        echo()
        for statement in reply["statements"]:
            if statement["verdict"] == "doubtful":
                show_doubtful(statement)
        show_sources(reply)
    else:
        show_refusal(reply)
