"""`lectern eval`, run as a person or a program runs it."""

import json
from pathlib import Path

import pytest

from tests.evals.making import question_set
from tests.served import lectern


def test_from_a_set_to_a_table_a_picture_and_a_comparison(tmp_path: Path) -> None:
    """One JSON line for programs, a table and a picture for people, runs that are numbered and compared."""
    home, folder = tmp_path / "home", question_set(tmp_path / "qa-small")

    figures = json.loads(lectern("eval", "retrieval", str(folder), "--json", home=home).stdout.splitlines()[-1])
    result = lectern("eval", "retrieval", str(folder), "--picture", str(tmp_path / "chart.svg"), home=home)
    compared = lectern("eval", "compare", "1", "2", home=home).stdout

    assert set(figures["modes"]) == {"hybrid", "dense", "lexical"}
    assert {"recall@1", "recall@5", "recall@10", "mrr@10", "ndcg@10"} == figures["modes"]["hybrid"].keys()
    assert figures["run"] == 1
    assert "qa-small: 4 questions, 5 documents" in result.stdout
    assert result.stderr == ""  # no progress bar where nobody watches
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "run 1 → run 2\n  the same recipe" in compared


def test_a_gate_that_is_not_reached_is_exit_2(tmp_path: Path) -> None:
    """The figures are printed and stored all the same; stderr says what fell short."""
    home, folder = tmp_path / "home", question_set(tmp_path / "qa-small")

    # Two of the four questions' golds are two documents, so one result cannot hold them all.
    failed = lectern("eval", "retrieval", str(folder), "--fail-under", "recall@1=1", home=home, check=False)
    passed = lectern("eval", "retrieval", str(folder), "--fail-under", "recall@5=0.9", home=home, check=False)

    assert failed.returncode == 2
    assert failed.stderr.startswith("lectern: qa-small: hybrid recall@1 is 0.")
    assert failed.stdout.startswith("run 1")
    assert passed.returncode == 0
    assert passed.stdout.startswith("run 2")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["retrieval", "no-such-folder"], "no-such-folder"),
        (["retrieval", ".", "--fail-under", "recall@7=1"], "recall@7"),
        (["retrieval", ".", "..", "--book", "."], "--book"),
        (["chunking", "."], "queries.jsonl"),
        (["compare", "1", "2"], "does not exist"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str], says: str, tmp_path: Path) -> None:
    """A mistake is answered by one line, before any work is done or any folder made."""
    result = lectern("eval", *arguments, home=tmp_path / "none", check=False)

    assert result.returncode == 2
    assert says in result.stderr
    assert result.stderr.startswith("lectern: ")
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "none").exists()
