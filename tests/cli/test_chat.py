"""`lectern chat` and `lectern threads`, as a person or a program uses them."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pytest

from tests.served import lectern

QUESTION = "What does a best effort publisher mean for a reliable subscriber?"
OFF_BOOK = "Which wine goes well with roast duck?"


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A home of one's own with the sample book."""
    shutil.copytree(sample_home, tmp_path / "home")
    return tmp_path / "home"


def test_a_conversation_is_kept_and_taken_up_again(home: Path, tmp_path: Path) -> None:
    """Questions from stdin are answered one by one; the thread is listed, shown, exported, continued and deleted."""
    first = lectern("chat", "--json", home=home, typed=f"{QUESTION}\n{OFF_BOOK}\n").stdout.splitlines()
    answered, refused = (json.loads(line) for line in first)
    thread = answered["session_id"]
    lectern("chat", thread, home=home, typed=f"{QUESTION}\n")

    [head] = json.loads(lectern("threads", "list", "--json", home=home).stdout)
    result = lectern("threads", "show", thread, home=home).stdout
    lectern("threads", "export", thread, "-o", str(tmp_path / "conversation.md"), home=home)
    whole = json.loads(lectern("threads", "export", thread, "--format", "json", home=home).stdout)

    assert (answered["should_answer"], refused["should_answer"]) == (True, False)
    assert (head["thread_id"], head["turn_count"]) == (thread, 3)
    assert OFF_BOOK in result
    assert (tmp_path / "conversation.md").read_text().count(f"## {QUESTION}") == 2
    assert whole["turns"][0]["reply"] == answered
    lectern("threads", "delete", thread, home=home)
    missing = lectern("threads", "show", thread, home=home, check=False)
    assert (missing.returncode, "no thread" in missing.stderr) == (2, True)


def test_what_can_be_typed_in_a_conversation(home: Path, tmp_path: Path) -> None:
    """Sources, filters, export and a new conversation; a mistake is said and the conversation goes on."""
    file = tmp_path / "out.md"
    typed = "\n".join(
        [
            "/help",
            "/sources",
            QUESTION,
            "/sources",
            "/filters tier=2 level=A1,B1",
            "/filters tier=x",
            "/filters nonsense",
            "/filters clear",
            f"/export {file}",
            "/export /no/such/folder/x.md",
            "/new",
            "/what",
            OFF_BOOK,
            "/sources",
            "/quit",
        ]
    )
    result = lectern("chat", home=home, typed=typed)

    for phrase in (
        "There is no answer yet",
        "[1]",
        "tier=2, level=",
        "is a number",
        "is no filter",
        "No filters.",
        "Written",
    ):
        assert phrase in result.stdout
    assert "/what is not known" in result.stdout
    assert "I couldn't find that" in result.stdout
    assert "The last question was refused" in result.stdout
    assert "cannot be written" in result.stderr
    assert QUESTION in file.read_text()
    threads = json.loads(lectern("threads", "list", "--json", home=home).stdout)
    assert [thread["turn_count"] for thread in threads] == [1, 1]


def test_what_comes_from_the_outline_is_printed_too(home: Path) -> None:
    """The answer, once, and its sources below."""
    result = lectern("chat", home=home, typed="Which modules does the book have?\n").stdout

    answer, _, sources = result.partition("\n\n")
    assert answer.splitlines()[0] == "- The Robotic Nervous System [1]"
    assert sources.startswith("[1] ")


def test_an_unknown_id_is_no_conversation_to_resume(home: Path) -> None:
    """Who mistypes an id is told that a new conversation begins."""
    missing = str(uuid.uuid4())
    assert f"there is no conversation {missing!r}" in lectern("chat", missing, home=home, typed=f"{QUESTION}\n").stderr
    assert lectern("chat", missing, home=home, typed=f"{QUESTION}\n").stderr == ""


def test_an_ephemeral_conversation_is_not_listed(home: Path) -> None:
    """Nothing of it is kept."""
    lectern("chat", "--ephemeral", home=home, typed=f"{QUESTION}\n")

    assert json.loads(lectern("threads", "list", "--json", home=home).stdout) == []


def test_purging_asks_first(home: Path) -> None:
    """Without a yes nothing goes; with one, what was not used for long enough."""
    lectern("chat", home=home, typed=f"{QUESTION}\n")

    lectern("threads", "purge", "--older-than", "0", home=home, typed="n\n", check=False)
    assert len(json.loads(lectern("threads", "list", "--json", home=home).stdout)) == 1
    purged = lectern("threads", "purge", "--older-than", "0", "--yes", "--json", home=home).stdout
    assert json.loads(purged) == {"threads_deleted": 1}


def test_a_thread_id_must_be_one(home: Path) -> None:
    """What is no UUID of version 4 is refused with advice."""
    for wrong in ("x", str(uuid.uuid1())):
        result = lectern("chat", wrong, home=home, typed=f"{QUESTION}\n", check=False)
        assert "version 4" in result.stderr
