"""What a book holds is never obeyed by the reader's terminal: every text is cleaned, and JSON has escapes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lectern.cli import terminal
from tests.served import lectern

SEQUENCES = "\x1b]0;owned\x07 \x1b[2J \x1b]52;c;ZXZpbA==\x1b\\ \x9b31m \u202eesrever\u202c \x08\x7f end"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LESSON = f"""---
title: "Torque \u009b31m control \u202e"
---
# Torque {SEQUENCES}

## Motors {SEQUENCES}

A motor {SEQUENCES} turns electric current into torque. The torque {SEQUENCES} is limited by the current.
"""
OUTLINE_QUESTION = "Which lessons does the book have?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a book full of escape sequences."""
    folder = tmp_path_factory.mktemp("hostile")
    book = folder / "book"
    (book / "module-one").mkdir(parents=True)
    (book / "module-one" / "01-torque.md").write_text(LESSON, encoding="utf-8")
    (book / "lectern.toml").write_text(f"title = {json.dumps('Motors ' + SEQUENCES)}\n", encoding="utf-8")
    lectern("ingest", str(book), home=folder / "home")
    return folder / "home"


def commands(home: Path) -> list[list[str]]:
    """Every command that prints something of a book."""
    found = json.loads(lectern("search", "torque", "--json", home=home).stdout)["results"][0]
    return [
        ["search", "What limits the torque?", "--expand", "1"],
        ["ask", "What limits the torque of a motor?"],
        ["ask", OUTLINE_QUESTION],
        ["books", "list"],
        ["outline"],
        ["lesson", found["parent_doc_id"]],
        ["chunks"],
        ["search", f"torque {SEQUENCES}"],
        ["search", "torque", "--book", f"none {SEQUENCES}"],
    ]


def test_no_command_prints_what_a_terminal_obeys(home: Path) -> None:
    """Without a terminal nothing is styled, so no control character but the line's end may be there; and as JSON the
    very same text comes through."""
    for command in commands(home):
        plain = lectern(*command, home=home, check=False)
        output = plain.stdout + plain.stderr
        assert output.strip(), command
        assert not OBEYED.search(output), (command, output)
        as_json = lectern(*command, "--json", home=home, check=False)
        assert not OBEYED.search(as_json.stdout), command
    whole = json.loads(lectern("search", "torque", "--json", home=home).stdout)["results"][0]
    assert "\x9b31m" in whole["text"]


def test_a_conversation_prints_nothing_that_a_terminal_obeys(home: Path) -> None:
    """Streamed answers, their sources and the exported conversation are cleaned too."""
    talk = lectern("chat", "--ephemeral", home=home, check=False, typed="What limits the torque?\n/sources\n/export\n")
    assert "torque" in talk.stdout
    assert not OBEYED.search(talk.stdout + talk.stderr)


def test_cleaning_keeps_positions_and_readable_text() -> None:
    """A text is as long as before, so that marks still fit, and letters of every script stay."""
    text = "a\x1bb\u202ec\ud800d\re — Größe, שלום, 中文\n\tend"
    shown = terminal.clean(text)

    assert len(shown) == len(text)
    assert not OBEYED.search(shown)
    assert shown.endswith("e — Größe, שלום, 中文\n\tend")
    shown.encode()


def test_only_one_module_writes_to_the_terminal() -> None:
    """No command prints past the cleaning."""
    folder = Path(terminal.__file__).parent
    for file in sorted(folder.glob("*.py")):
        if file.name != "terminal.py":
            assert not re.search(r"typer\.s?echo\(|(?<![\w.])print\(", file.read_text(encoding="utf-8")), file.name
