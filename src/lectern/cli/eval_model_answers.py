"""`lectern eval model-answers`: measures whether answers of language models arrive as written, and what the verdicts on
their claims are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lectern.cli.options import Json
from lectern.cli.render import run_async
from lectern.cli.terminal import echo, print_json

AnswersFile = Annotated[Path, typer.Argument(help="A file of answers with their passages and false twins.")]
Docs = Annotated[Path | None, typer.Option("--docs", help="The folder that passages named by file are read from.")]
RulesOnly = Annotated[bool, typer.Option("--rules-only", help="Judge without the network.")]


def model_answers(path: AnswersFile, *, docs: Docs = None, rules_only: RulesOnly = False, json: Json = False) -> None:
    """Answers as language models write them: how many arrive as written, verdicts on true and false claims."""
    figures = run_async(_figures(path, docs, rules_only=rules_only))
    if json:
        print_json(figures)
        return
    from lectern.evals.model_answers import answers_text

    echo(answers_text(figures))


async def _figures(path: Path, docs: Path | None, *, rules_only: bool) -> dict[str, Any]:
    from lectern.evals.model_answers import answers_figures, load_answers, measure_answers
    from lectern.grounding.judge import LocalJudge
    from lectern.models.local.entailment import LocalEntailment

    judge = LocalJudge(None if rules_only else LocalEntailment())
    return answers_figures(await measure_answers(load_answers(path, docs), judge))
