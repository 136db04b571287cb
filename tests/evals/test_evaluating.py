"""Evaluations from end to end, on small sets, with the real pipeline and the real local embedder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from lectern.app.settings import Settings
from lectern.domain.errors import SourceError
from lectern.evals.datasets import load_set
from lectern.evals.runner import EvalContext, evaluate
from lectern.evals.runs import Kind, Run, summary
from tests.evals.making import DOCUMENTS, question_set, write_files

LONG = "\n\n".join(
    f"Paragraph {number}. The {place} keeper wrote down the wind, the weather and every ship that passed {place}. "
    + f"At night the lamp of {place} turned {number + 2} times a minute, so that sailors knew where they were. " * 4
    for number, place in enumerate("Skerry Fastnet Eddystone Longstone Ardnamurchan Lizard Portland Orford".split())
)


async def run(kind: Kind, sets: Sequence[Path], tmp_path: Path, *, fresh: bool = False) -> tuple[Run, list[str]]:
    """A run, and all that was said about its progress."""
    heard: list[str] = []
    context = EvalContext(
        settings=Settings(),
        cache=tmp_path / "cache",
        fresh=fresh,
        advance=lambda label, _count, _total: heard.append(label),
    )
    return await evaluate(kind, [load_set(path) for path in sets], context), heard


async def test_a_small_corpus_is_searched_in_every_mode(tmp_path: Path) -> None:
    """Five short documents hold no secret from a hybrid search, and the recipe says how they were searched."""
    result, _ = await run("retrieval", [question_set(tmp_path / "qa-small")], tmp_path)

    figures = summary(result)
    assert list(figures["modes"]) == ["hybrid", "dense", "lexical"]
    assert figures["modes"]["hybrid"]["recall@5"] == 1
    assert figures["modes"]["dense"]["recall@1"] >= 0.5
    assert figures["sets"][0]["n"] == 4
    assert figures["sets"][0]["documents"] == figures["sets"][0]["chunks"] == 5
    assert figures["sets"][0]["left_out"] == {"unanswerable": 1}
    assert figures["recipe"]["embedder"].startswith("local/")
    assert {"lexical_weight", "candidates", "reader", "seed", "numpy"} <= figures["recipe"].keys()


async def test_a_second_run_indexes_nothing(tmp_path: Path) -> None:
    """What was indexed is kept, the figures are the same, and `fresh` does not trust it."""
    folder = question_set(tmp_path / "qa-small")
    first, started_run = await run("retrieval", [folder], tmp_path)
    second, again = await run("retrieval", [folder], tmp_path)
    _, anew = await run("retrieval", [folder], tmp_path, fresh=True)

    assert [result.modes for result in first.sets] == [result.modes for result in second.sets]
    assert "Indexing qa-small" in started_run
    assert "Indexing qa-small" not in again
    assert "Indexing qa-small" in anew


async def test_an_index_of_other_code_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the code that makes an index changes, a kept one is not what would be measured; texts keep their vectors."""
    folder = question_set(tmp_path / "qa-small")
    await run("retrieval", [folder], tmp_path)
    monkeypatch.setattr("lectern.evals.indexed_sets.code_digest", lambda _packages: "edited")

    _, heard = await run("retrieval", [folder], tmp_path)

    assert "Indexing qa-small" in heard


async def test_a_set_is_indexed_apart_from_the_operators_books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever servers the settings name, a measurement writes to no index and no database but its own."""
    nobody = "127.0.0.1:9"  # a server that does not answer
    monkeypatch.setenv("DATABASE_URL", f"postgresql://lectern@{nobody}/lectern")
    monkeypatch.setenv("QDRANT_URL", f"http://{nobody}")
    found, _ = await run("retrieval", [question_set(tmp_path / "qa-small")], tmp_path)

    assert found.sets[0].chunks == len(DOCUMENTS)
    assert not (tmp_path / "home").exists()


async def test_two_books_of_one_set_are_kept_apart(tmp_path: Path) -> None:
    """A question is asked of its own book alone, though the other says it better."""
    queries = [
        {"_id": "a", "text": "What makes honey?", "gold": [{"doc": "one/bees.md"}], "meta": {"book": "one"}},
        {"_id": "b", "text": "What makes honey?", "gold": [{"doc": "two/wasps.md"}], "meta": {"book": "two"}},
    ]
    folder = question_set(tmp_path / "qa-two", queries, None)
    write_files(folder, {"one/bees.md": "# Bees\n\nBees make honey.", "two/wasps.md": "# Wasps\n\nWasps make paper."})

    result, _ = await run("retrieval", [folder], tmp_path)

    assert summary(result)["modes"]["hybrid"]["recall@1"] == 1


async def test_a_document_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """It stays in the corpus as one that cannot be found, and the report says why."""
    documents = [*DOCUMENTS, {"_id": "empty", "title": "", "text": ""}]
    result, _ = await run("retrieval", [question_set(tmp_path / "qa-small", documents=documents)], tmp_path)

    [line] = result.sets[0].failed
    assert line.startswith("empty: ")


async def test_chunking_is_measured_by_exact_spans(tmp_path: Path) -> None:
    """Chunks lose no token, an excerpt of one sentence is found with others around it, and last sentences lead back."""
    expected_text = "The Lizard keeper wrote down the wind, the weather and every ship that passed Lizard."
    span = [LONG.index(expected_text), LONG.index(expected_text) + len(expected_text)]
    queries = [
        {"_id": "a", "text": "What did the Lizard keeper write down?", "gold": [{"doc": "lights", "span": span}]},
        {"_id": "b", "text": "What is in the lighthouse book?", "gold": [{"doc": "lights", "span": [0, len(LONG)]}]},
    ]
    folder = question_set(tmp_path / "qa-cut", queries, [{"_id": "lights", "title": "Lights", "text": LONG}])

    result, _ = await run("chunking", [folder], tmp_path)

    modes = result.sets[0].modes
    assert result.sets[0].chunks > 1
    recalled, precision, iou = modes["ideal"].values["a"]
    assert (recalled, precision) == (1, iou)
    assert 0 < precision < 0.5
    assert modes["ideal"].values["b"][0] == 1
    assert modes["ideal"].values["b"][1] == pytest.approx(1, abs=0.01)  # less the heading, which is ours
    assert modes["hybrid"].values["a"][0] == 1
    assert summary(result)["modes"]["last_sentence"]["recall@5"] > 0.9


async def test_chunking_needs_spans(tmp_path: Path) -> None:
    """A set that does not say where its documents answer is refused, with what is missing."""
    with pytest.raises(SourceError, match="span"):
        await run("chunking", [question_set(tmp_path / "qa-small")], tmp_path)
