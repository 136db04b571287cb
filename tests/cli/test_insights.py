"""`lectern insights`, as an author uses it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lectern.cli import insights as command
from tests.served import lectern

QUESTION = "What does a best effort publisher mean for a reliable subscriber?"
OFF_BOOK = "Which wine goes well with roast duck?"


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A home of one's own with the sample book and a conversation."""
    shutil.copytree(sample_home, tmp_path / "home")
    lectern("chat", home=tmp_path / "home", typed=f"{QUESTION}\n{OFF_BOOK}\n")
    return tmp_path / "home"


def test_insights_are_printed_for_people_and_for_programs(home: Path) -> None:
    """Counts and lists in words, or one JSON line; questions have no text unless the operator shows them."""
    text = lectern("insights", home=home).stdout
    body = json.loads(lectern("insights", "physical-ai-robotics", "--days", "2", "--json", home=home).stdout)

    assert "2 questions: 1 answered" in text
    assert "Most cited" in text
    assert "Never cited" in text
    assert (body["turns"], body["refused"], body["days"], len(body["per_day"])) == (2, 1, 2, 2)
    assert body["never_cited_total"] + len(body["most_cited"]) == body["sections"]
    assert "duck" not in text + json.dumps(body)


def test_question_texts_are_shown_if_the_operator_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the setting, a refused question is under its lesson."""
    monkeypatch.setenv("LECTERN_INSIGHTS_QUESTIONS", "true")

    assert OFF_BOOK in lectern("insights", home=home).stdout


def test_mistakes_are_said_in_the_words_of_the_command(home: Path) -> None:
    """An unknown book and too many days are exit code 2."""
    for arguments, words in ((("nothing",), "nothing"), (("--days", "999"), "--days")):
        result = lectern("insights", *arguments, home=home, check=False)
        assert result.returncode == 2
        assert words in result.stderr


def test_a_list_that_was_cut_off_says_how_much_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    """Of 294 sections `--json` has the first 200: nobody is told that the rest is there."""
    command._show_list("Never cited", ["a section"] * 200, total=294)
    command._show_list("Most cited", ["a section"] * 12)

    printed = capsys.readouterr().out
    assert "… 284 more; --json has the first 200" in printed
    assert "… 2 more with --json" in printed
