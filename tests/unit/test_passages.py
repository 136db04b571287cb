"""Quoted passages, which are cut at words, as HTML."""

from __future__ import annotations

import re

import pytest

from lectern.rendering.passages import passage_html, whole_blocks


def test_a_table_that_lost_its_head_is_a_table() -> None:
    """The rows that are whole are shown in columns; the one that was cut is not."""
    html = passage_html("…keep all | keep last |\n| Depth | a number |\n| Deadline | none |\n\n*Reliable* means more.")

    assert re.findall(r"<td>(.*?)</td>", html) == ["Depth", "a number", "Deadline", "none"]
    assert re.findall(r"<th>(.*?)</th>", html) == ["", ""]
    assert "keep all" not in html
    assert "<em>Reliable</em>" in html


def test_a_table_that_is_cut_in_its_head_has_no_line_of_signs() -> None:
    """The line between head and rows is not shown as text."""
    html = passage_html("…Policy | Values |\n|---|:--:|\n| Depth | a number |")

    assert re.findall(r"<td>(.*?)</td>", html) == ["Depth", "a number"]
    assert "--" not in html


@pytest.mark.parametrize(
    "passage",
    [
        "…x = 1\ny = 2\n```\n\nThen run it.",
        "…x = 1\n```\n\nThen this:\n\n```js\nrun()\n```",
        '…x = 1\n```\n\nThen this:\n\n```js title="a.js"\nrun(…',
    ],
)
def test_a_listing_that_lost_its_beginning_is_a_listing(passage: str) -> None:
    """Its code does not run into the sentence after it, nor that sentence into a listing."""
    html = passage_html(passage)

    assert re.search(r"<pre><code>x = 1\n", html)
    assert re.search(r"<p>Then [a-z ]+[.:]</p>", html)


@pytest.mark.parametrize(
    "passage",
    [
        "…as a command:\n\n```\nrun --all…",
        "…as a command:\n\n```\nrun\n```\n\nThat is all.",
        "…a sentence.\n\n| A | B |\n|---|---|\n| 1 | 2 |",
        "A whole passage | with a bar\n| and | another |",
    ],
)
def test_a_block_that_is_whole_stays_as_it_is(passage: str) -> None:
    """Nothing is added to a listing or a table that begins in the passage."""
    assert whole_blocks(passage) == passage


def test_a_heading_without_its_text_is_left_out() -> None:
    """A passage does not end with the title of what is not quoted."""
    assert whole_blocks("Four of them.\n\n## The fifth\n\n…") == "Four of them.\n"
