"""`lectern eval grounding`: measures how well the judge separates supported sentences from others, compared with word
coverage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lectern.cli.options import Json
from lectern.cli.render import run_async
from lectern.cli.terminal import echo, print_json

GroundingFile = Annotated[
    Path, typer.Argument(help="data.jsonl (context, response, label), its folder, or a file of judged sentence pairs.")
]
RulesOnly = Annotated[bool, typer.Option("--rules-only", help="Judge without the network.")]


def grounding(path: GroundingFile, *, rules_only: RulesOnly = False, json: Json = False) -> None:
    """Judge labelled sentences: balanced accuracy and AUROC with intervals, or verdicts by kind of falsification."""
    figures = run_async(_figures(path, rules_only=rules_only))
    if json:
        print_json(figures)
        return
    from lectern.evals.grounding import grounding_text

    echo(grounding_text(figures))


async def _figures(path: Path, *, rules_only: bool) -> dict[str, Any]:
    from lectern.evals.grounding import grounding_figures, load_grounding
    from lectern.grounding.judge import LocalJudge
    from lectern.models.local.entailment import LocalEntailment

    data = load_grounding(path)
    return await grounding_figures(data, LocalJudge(None if rules_only else LocalEntailment()))
