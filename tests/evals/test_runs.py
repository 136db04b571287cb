"""Runs that are stored, compared, gated, shown and drawn."""

from pathlib import Path
from xml.etree import ElementTree as ET

import grimp
import pytest
from inline_snapshot import snapshot

from lectern.domain.errors import BadInput
from lectern.evals.metrics import METRICS
from lectern.evals.recipes import INDEXING_PACKAGES, SEARCH_PACKAGES
from lectern.evals.report import comparison_text, parse_gates, run_text, shortfalls
from lectern.evals.retrieval_picture import draw_chart
from lectern.evals.runs import MetricValues, Run, SetResult, compare, load, store, summary

RECIPE = {"embedder": "test/words/32", "reader": "1", "lexical_weight": 0.4, "candidates": 50}
HIT_FIRST, LATE, LOST = (1.0, 1.0, 1.0, 1.0, 1.0), (0.0, 1.0, 1.0, 0.5, 0.63), (0.0, 0.0, 0.0, 0.0, 0.0)


def run_of(hybrid: dict[str, tuple[float, ...]], name: str = "qa-small", **recipe: float) -> Run:
    """A run over one set, in two modes."""
    modes = {
        "hybrid": MetricValues(metrics=METRICS, values=hybrid),
        "dense": MetricValues(metrics=METRICS, values=dict.fromkeys(hybrid, LATE)),
    }
    result = SetResult(
        name=name,
        documents=3,
        chunks=4,
        left_out={"unanswerable": 2},
        failed=(),
        kinds={"q1": "open", "q2": "closed"},
        modes=modes,
        seconds=1.25,
    )
    return Run(kind="retrieval", at="2026-01-01T00:00:00.000Z", recipe={**RECIPE, **recipe}, sets=(result,))


@pytest.mark.parametrize(
    ("packages", "modules"),
    [
        (INDEXING_PACKAGES, ("ingestion.ingest", "index.edge", "models.local.embedder")),
        (SEARCH_PACKAGES, ("retrieval.search", "index.edge")),
    ],
)
def test_the_hash_of_the_code_covers_what_it_is_made_of(packages: tuple[str, ...], modules: tuple[str, ...]) -> None:
    """An edit of anything that makes or searches an index changes the recipe; ports have no behaviour."""
    graph = grimp.build_graph("lectern")
    used = {used for name in modules for used in graph.find_upstream_modules(f"lectern.{name}")}

    assert {name.split(".")[1] for name in used if "." in name} - {"ports"} <= set(packages)


def test_runs_get_increasing_numbers_and_come_back_whole(tmp_path: Path) -> None:
    """What is stored is what was measured; a number is never given twice, though a run was deleted in between."""
    first = store(run_of({"q1": HIT_FIRST, "q2": LOST}), tmp_path / "runs")
    second = store(run_of({"q1": LATE, "q2": LOST}), tmp_path / "runs")
    (tmp_path / "runs" / "0001.json").unlink()
    third = store(first, tmp_path / "runs")

    assert (first.number, second.number, third.number) == (1, 2, 3)
    assert load("2", tmp_path / "runs") == second
    assert load(str(tmp_path / "runs" / "0003.json"), tmp_path) == third


def test_an_unknown_or_broken_run_is_said(tmp_path: Path) -> None:
    """The error names the runs there are, or what is wrong with the file."""
    store(run_of({"q1": HIT_FIRST, "q2": LOST}), tmp_path)
    (tmp_path / "0002.json").write_text('{"kind": "retrieval"}', encoding="utf-8")

    with pytest.raises(BadInput, match=r"there is no run '9'.*1, 2"):
        load("9", tmp_path)
    with pytest.raises(BadInput, match="is not a run"):
        load("2", tmp_path)


def test_programs_read_modes_intervals_and_kinds() -> None:
    """`modes` has a number for every metric; of several sets it is their mean, each set counting the same."""
    first_run = run_of({"q1": HIT_FIRST, "q2": LOST})
    two = run_of({"q1": HIT_FIRST, "q2": HIT_FIRST, "q3": HIT_FIRST, "q4": HIT_FIRST}, "qa-other")
    merged_run = Run(kind="retrieval", at=first_run.at, recipe=first_run.recipe, sets=(*first_run.sets, *two.sets))

    assert summary(first_run)["modes"]["hybrid"] == dict.fromkeys(METRICS, 0.5)
    assert summary(first_run)["sets"][0]["intervals"]["hybrid"]["recall@5"] == (0.0, 1.0)
    assert summary(first_run)["sets"][0]["kinds"]["open"]["modes"]["hybrid"]["recall@5"] == 1
    assert summary(merged_run)["modes"]["hybrid"]["recall@5"] == 0.75


def test_a_comparison_pairs_the_questions() -> None:
    """Only questions of both runs count, and a change in the recipe is named."""
    before = run_of({"q1": LATE, "q2": LOST, "q3": HIT_FIRST})
    after = run_of({"q1": HIT_FIRST, "q2": LOST, "q4": HIT_FIRST}, lexical_weight=0.5)

    comparison = compare(before, after)

    assert comparison["recipe"] == {"lexical_weight": [0.4, 0.5]}
    assert comparison["sets"][0]["n"] == 2
    assert comparison["sets"][0]["modes"]["hybrid"]["recall@1"]["change"] == pytest.approx(0.5)
    assert comparison["sets"][0]["modes"]["hybrid"]["recall@5"]["change"] == 0


def test_runs_that_share_nothing_are_not_compared() -> None:
    """Two sets, or two kinds of evaluation, have no difference to show."""
    first_run = run_of({"q1": HIT_FIRST, "q2": LOST})

    with pytest.raises(BadInput, match="no question in common"):
        compare(first_run, run_of({"q1": HIT_FIRST, "q2": LOST}, "qa-other"))
    with pytest.raises(BadInput, match="of retrieval, run 0 of chunking"):
        compare(first_run, Run(kind="chunking", at=first_run.at, recipe=first_run.recipe, sets=first_run.sets))


def test_gates() -> None:
    """A gate holds for hybrid in every set; what falls short is said with its figure."""
    run = run_of({"q1": HIT_FIRST, "q2": LOST})

    assert shortfalls(run, parse_gates("recall@5=0.5,mrr@10=0.4", "retrieval")) == []
    assert shortfalls(run, parse_gates("recall@5=0.51, mrr@10=0.4", "retrieval")) == snapshot(
        ["qa-small: hybrid recall@5 is 0.5000, below 0.51"]
    )


@pytest.mark.parametrize("text", ["recall@5", "recall@7=0.5", "recall@5=high", "recall@5=80", "token_iou=0.1", ""])
def test_a_bad_gate_is_an_error(text: str) -> None:
    """A gate that would never close, or never open, is not accepted."""
    with pytest.raises(BadInput, match="--fail-under"):
        parse_gates(text, "retrieval")


def test_the_table() -> None:
    """A person sees the recipe, the set, and every mean with its interval."""
    assert run_text(run_of({"q1": HIT_FIRST, "q2": LOST})) == snapshot("""\
run 0 · retrieval · test/words/32 · reader 1 · 0.4 of BM25, 50 candidates

qa-small: 2 questions, 3 documents, 4 chunks, 1 s, 2 unanswerable left out
          recall@1             recall@5             recall@10            mrr@10               ndcg@10
  hybrid  0.500 (0.000-1.000)  0.500 (0.000-1.000)  0.500 (0.000-1.000)  0.500 (0.000-1.000)  0.500 (0.000-1.000)
  dense   0.000 (0.000-0.000)  1.000 (1.000-1.000)  1.000 (1.000-1.000)  0.500 (0.500-0.500)  0.630 (0.630-0.630)\
""")


def test_the_comparison() -> None:
    """A person sees what changed, and a star where it is hardly chance."""
    before = run_of({f"q{number}": LATE for number in range(20)})
    after = run_of({f"q{number}": HIT_FIRST for number in range(20)}, candidates=60)

    assert comparison_text(compare(before, after)) == snapshot("""\
run 0 → run 0
  candidates: 50 → 60

qa-small: 20 questions in both
  hybrid  recall@1   0.000 → 1.000  +1.000 (+1.000 to +1.000) *
  hybrid  recall@5   1.000 → 1.000  +0.000 (+0.000 to +0.000)
  hybrid  recall@10  1.000 → 1.000  +0.000 (+0.000 to +0.000)
  hybrid  mrr@10     0.500 → 1.000  +0.500 (+0.500 to +0.500) *
  hybrid  ndcg@10    0.630 → 1.000  +0.370 (+0.370 to +0.370) *
  dense   recall@1   0.000 → 0.000  +0.000 (+0.000 to +0.000)
  dense   recall@5   1.000 → 1.000  +0.000 (+0.000 to +0.000)
  dense   recall@10  1.000 → 1.000  +0.000 (+0.000 to +0.000)
  dense   mrr@10     0.500 → 0.500  +0.000 (+0.000 to +0.000)
  dense   ndcg@10    0.630 → 0.630  +0.000 (+0.000 to +0.000)\
""")


def test_the_picture_is_a_chart_anyone_can_open() -> None:
    """Well-formed SVG with a bar for each mode, its height the figure, and names safely written."""
    svg = ET.fromstring(draw_chart(run_of({"q1": HIT_FIRST, "q2": LOST}, "qa-<b> & co"), "recall@5"))

    space = "{http://www.w3.org/2000/svg}"
    bars = [bar for bar in svg.iter(f"{space}rect") if bar.find(f"{space}title") is not None]
    assert [float(bar.attrib["height"]) for bar in bars] == [120, 240]
    assert "qa-<b> & co" in {text.text for text in svg.iter(f"{space}text")}
