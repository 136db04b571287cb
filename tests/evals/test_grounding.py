"""Grounding sets: how they are read, halved and counted."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lectern.cli.eval_grounding import grounding
from lectern.domain.errors import SourceError
from lectern.domain.replies import Judgement, Verdict
from lectern.evals.grounding import (
    auroc,
    balanced_accuracy,
    best_threshold,
    grounding_figures,
    grounding_text,
    half_of,
    load_grounding,
    word_coverage,
)

SCORES = np.array([0.9, 0.8, 0.4, 0.4, 0.1])
TRUTH = np.array([True, False, True, False, False])


class Oracle:
    """Supports every sentence that says yes."""

    async def judge(self, sentence: str, passages: Sequence[str]) -> Judgement:
        """Its verdict."""
        verdict: Verdict = "supported" if "yes" in sentence else "doubtful"
        return Judgement(verdict=verdict, support=float("yes" in sentence))


def statements(path: Path, count: int = 40) -> Path:
    """A set of statements, three about each context."""
    lines = []
    for number in range(count):
        label = ("supported", "partial", "unsupported")[number % 3]
        sentence = "yes" if label == "supported" else "no"
        lines.append({"context": [f"Passage {number // 3}."], "response": f"{sentence} {number}", "label": label})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def pairs(path: Path) -> Path:
    """A set of three pairs."""
    rows = [("yes one", "supported", "verbatim"), ("yes two", "falsified", "swap"), ("no", "falsified", "number")]
    lines = [
        {"passage": "p", "sentence": sentence, "label": label, "kind": kind, "split": "dev"}
        for sentence, label, kind in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_figures_by_hand() -> None:
    """Ties count half in AUROC; balanced accuracy weighs both classes alike; the best cut is found."""
    assert auroc(SCORES, TRUTH) == pytest.approx((3 + 1 + 0.5) / 6)
    assert balanced_accuracy(SCORES >= 0.5, TRUTH) == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert best_threshold(SCORES, TRUTH) == pytest.approx(0.9)


async def test_a_perfect_judge_beats_word_coverage(tmp_path: Path) -> None:
    """Partly supported is not supported, and the lead over word coverage is counted on the half not fitted on."""
    data = load_grounding(statements(tmp_path / "data.jsonl"))
    figures = await grounding_figures(data, Oracle())

    assert {case.kind for case in data.cases if case.true} == {"supported"}
    assert figures["scores"]["judge"]["auroc"] == 1.0
    assert figures["scores"]["judge"]["balanced_accuracy"] == 1.0
    assert figures["better_by"]["auroc"] > 0
    assert figures["reported"] == sum(case.part == "report" for case in data.cases)
    assert "word_coverage" in grounding_text(figures)


def test_statements_about_one_context_stay_in_one_half() -> None:
    """What is fitted on says nothing about what is reported."""
    halves = [half_of([f"context {number}", "more"]) for number in range(200)]

    assert half_of(["same", "a"]) == half_of(["same", "b"])
    assert 60 < halves.count("fit") < 140


async def test_pairs_are_counted_by_kind(tmp_path: Path) -> None:
    """Each way of falsifying has its own line, and all of them one together."""
    figures = await grounding_figures(load_grounding(pairs(tmp_path / "pairs.jsonl")), Oracle())
    kinds = figures["parts"]["dev"]

    assert kinds["verbatim"]["supported"] == 1.0
    assert kinds["swap"]["supported"] == 1.0
    assert kinds["falsified"] | {"n": 2, "supported": 0.5, "doubtful": 0.5} == kinds["falsified"]


def test_word_coverage_counts_telling_stems(tmp_path: Path) -> None:
    """The baseline is the share of telling words, stemmed, that any passage has."""
    case = load_grounding(statements(tmp_path / "data.jsonl", 6)).cases[0]
    case = replace(case, sentence="The robot 0")

    assert word_coverage(case) == 0.5  # "0" is in the passage, "robot" is not


@pytest.mark.parametrize("content", ["", '{"context": ["a"], "response": "b", "label": "perhaps"}\n', "{\n"])
def test_a_wrong_file_is_named(tmp_path: Path, content: str) -> None:
    """What is wrong with a set is said with its file."""
    file = tmp_path / "data.jsonl"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(SourceError, match=r"data\.jsonl"):
        load_grounding(file)


def test_the_command_prints_one_line_of_json(tmp_path: Path) -> None:
    """Programs read the same figures that people see."""
    import typer

    app = typer.Typer()
    app.command()(grounding)
    file = str(pairs(tmp_path / "pairs.jsonl"))
    printed = CliRunner().invoke(app, [file, "--rules-only", "--json"])
    result = CliRunner().invoke(app, [file, "--rules-only"])

    assert json.loads(printed.stdout)["parts"]["dev"]["falsified"]["n"] == 2
    assert "falsified" in result.stdout
