"""Answers as language models write them: which arrive as they were written, and what their verdicts are."""

from __future__ import annotations

import json
from pathlib import Path

from lectern.evals.model_answers import load_answers, measure_answers
from lectern.grounding.judge import LocalJudge

PASSAGE = "The arm moves at 0.5 m/s.\n\nThe gripper opens before the arm moves.\n\nThe base stands still."
NESTED = """The arm works in two steps:

1. **Grip.** This comes first:
   - The gripper opens before the arm moves. [3]

   ```shell
   open [0]
   ```
2. The arm moves at 0.5 m/s. [3]"""


def answers_file(folder: Path, answer: str, twin: tuple[str, str]) -> Path:
    """A file with one answer that cites its third passage."""
    original, false = twin
    line = {
        "question": "How does the arm work?",
        "answer": answer,
        "passages": [{"text": "Nothing."}, {"text": "Nothing else."}, {"text": PASSAGE}],
        "twins": [{"kind": "number", "original": original, "false": false}],
    }
    file = folder / "answers.jsonl"
    file.write_text(json.dumps({"_id": "a", "style": "close", **line}) + "\n", encoding="utf-8")
    return file


async def test_an_answer_with_nested_lists_is_intact(tmp_path: Path) -> None:
    """Indentation is part of an answer: what arrives is compared with it, and only the markers are numbered anew."""
    file = answers_file(tmp_path, NESTED, ("at 0.5 m/s", "at 0.7 m/s"))

    tally = await measure_answers(load_answers(file), LocalJudge(None))

    assert (tally.answers, tally.intact, tally.refused) == (1, 1, 0)
    assert sum(tally.true.values()) == 3  # two items and the listing
    assert tally.true["supported"] >= 1
    assert tally.true["doubtful"] == 0
    assert sum(tally.false["number"].values()) == 1
    assert tally.false["number"]["supported"] == 0


async def test_an_answer_that_lost_something_is_not_intact(tmp_path: Path) -> None:
    """A link that no passage has is taken out, so that the answer does not count as it was written."""
    file = answers_file(tmp_path, f"{NESTED}\n\nSee [more](https://elsewhere.test/).", ("at 0.5 m/s", "at 0.7 m/s"))

    tally = await measure_answers(load_answers(file), LocalJudge(None))

    assert (tally.answers, tally.intact) == (1, 0)
