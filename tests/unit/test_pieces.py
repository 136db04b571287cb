"""One reading of a passage: its blocks, its pieces, what they need from around them, and what they state."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from lectern.text.blocks import Block, blocks_of
from lectern.text.pieces import Piece, read, sentences_of, split_sentences, states
from lectern.text.statements import statements_of

PASSAGE = """\
## Grippers {#grippers}

A gripper has *two* fingers. It closes
in 0.6 s.

It needs three things:

- power of 24 V
- a controller. It runs at 1 kHz.

| Part | Mass |
|------|------|
| finger | 80 g |

Then run:

```bash
grip --close
```

$$
F = m a
$$
"""


def kinds(passage: str) -> list[tuple[str, str]]:
    """The kind and the text of every piece."""
    return [(piece.kind, piece.text) for piece in read(passage)]


def piece(passage: str, text: str) -> Piece:
    """The piece that holds a text."""
    [piece] = [candidate for candidate in read(passage) if text in candidate.text]
    return piece


def test_a_passage_is_read_once_into_pieces_of_every_kind() -> None:
    """Sentences, items, rows, listings, headings and formulas, in order, without the signs that mark them."""
    assert kinds(PASSAGE) == [
        ("heading", "Grippers"),
        ("sentence", "A gripper has *two* fingers."),
        ("sentence", "It closes in 0.6 s."),
        ("sentence", "It needs three things:"),
        ("item", "power of 24 V"),
        ("item", "a controller."),
        ("item", "It runs at 1 kHz."),
        ("row", "finger | 80 g"),
        ("sentence", "Then run:"),
        ("code", "grip --close"),
        ("formula", "$$\nF = m a\n$$"),
    ]


def test_a_piece_knows_where_it_stands() -> None:
    """Its span holds its words in the passage, over line breaks too."""
    spans = {piece.text: PASSAGE[piece.start : piece.end] for piece in read(PASSAGE)}

    assert spans["A gripper has *two* fingers."] == "A gripper has *two* fingers."
    assert spans["It closes in 0.6 s."] == "It closes\nin 0.6 s."
    assert spans["It runs at 1 kHz."] == "It runs at 1 kHz."
    assert spans["finger | 80 g"] == "| finger | 80 g |"
    assert spans["grip --close"] == "grip --close"


def test_a_piece_knows_what_it_needs_from_around_it() -> None:
    """An item its lead, a row its head, a listing the line that introduces it, and all the heading above."""
    assert piece(PASSAGE, "24 V").lead == "It needs three things:"
    assert piece(PASSAGE, "80 g").head == "Part | Mass"
    assert piece(PASSAGE, "grip --close").lead == "Then run:"
    assert piece(PASSAGE, "grip --close").block.language == "bash"
    assert {piece.heading for piece in read(PASSAGE)[1:]} == {"Grippers"}
    assert piece(PASSAGE, "*two*").plain == "A gripper has two fingers."


def test_a_label_in_bold_belongs_to_the_lead() -> None:
    """`It has:` alone would not say what has it; other sentences before it are no part of the lead."""
    assert piece("Some words first. **The arm.** It has:\n\n- six joints", "six").lead == "**The arm.** It has:"
    assert piece("Some words first. It has:\n\n- six joints", "six").lead == "It has:"


def test_a_listing_without_a_lead_follows_the_last_sentence() -> None:
    """Inside a list that is the item's, and a formula or table between them changes nothing."""
    assert read("The pump runs now.\n\n```\npump --on\n```")[-1].lead == "The pump runs now."
    assert read("Do this:\n\n- Open the valve first.\n\n  ```\n  pump --on\n  ```")[-1].lead == "Open the valve first."


def test_tasks_are_marked_until_the_next_section() -> None:
    """What stands under Exercises is no statement; a heading inside a quote opens no section."""
    passage = (
        "## Exercises\n\nWrite a node now.\n\n> # Summary\n>\n> Write it twice now.\n\n## Summary\n\nA node is done."
    )

    assert [piece.task for piece in read(passage)] == [True, True, True, True, False, False]
    assert sentences_of(passage) == ["A node is done."]


def test_lines_of_a_quotation_are_one_paragraph() -> None:
    """A line break inside a quotation ends no sentence, with or without the sign on the next line."""
    assert kinds("> The first half\n> and the second\nand the third.") == [
        ("sentence", "The first half and the second and the third.")
    ]


@pytest.mark.parametrize("passage", ["> ```py\n> x = 1\n> ```", "- ```py\n  x = 1\n  ```", "~~~py\nx = 1\n~~~"])
def test_a_listing_is_one_wherever_it_stands(passage: str) -> None:
    """In a quotation and on the line of an item too."""
    [piece] = read(passage)

    assert (piece.kind, piece.text.strip(), piece.block.language) == ("code", "x = 1", "py")


def test_only_a_bare_fence_closes_a_listing() -> None:
    """A fence that names a language, or is shorter, is a line of the listing; so is what looks like a formula."""
    passage = "````md\n```py\nx = 1\n```\n$$\n:::\n````\n\nThe end of it."

    assert kinds(passage) == [("code", "```py\nx = 1\n```\n$$\n:::"), ("sentence", "The end of it.")]


def test_formulas_are_no_prose_and_no_headings() -> None:
    """Whatever their lines look like; `$$` that nothing closes hides its own line alone."""
    assert [kind for kind, _ in kinds("So it is\n$$\na = b\n---\n| c |\n$$\nwhere b is one.")] == [
        "sentence", "formula", "sentence",
    ]  # fmt: skip
    assert kinds("$$ a = b\n\nIt goes on here.") == [("formula", "$$ a = b"), ("sentence", "It goes on here.")]


def test_signs_that_markdown_does_not_know_begin_items() -> None:
    """A tick or a dot at the head of a line, and a number that goes on counting in the middle of a paragraph."""
    passage = "You can now:\n✅ start the arm\n• stop the arm\n2. clean the arm\n- [x] park the arm"

    assert kinds(passage) == [
        ("sentence", "You can now:"),
        ("item", "start the arm"),
        ("item", "stop the arm"),
        ("item", "clean the arm"),
        ("item", "park the arm"),
    ]


def test_a_line_that_only_points_elsewhere_states_nothing() -> None:
    """An entry of a table of contents, a picture, a tag; a sentence with a link is a sentence."""
    passage = (
        "- [Meet the gripper](a.md)\n\n![A big red gripper](b.png)\n\n<details open>\n\nSee [the gripper](a.md) first."
    )

    assert [kind for kind, _ in kinds(passage)] == ["link", "link", "link", "sentence"]
    assert sentences_of(passage) == ["See [the gripper](a.md) first."]


def test_a_table_ends_where_a_line_has_no_bar() -> None:
    """What is written right below it is prose; rows without a head are rows all the same."""
    assert kinds("| a | b |\n|---|---|\n| 1 | 2 |\nThe text below.") == [
        ("row", "1 | 2"), ("sentence", "The text below."),
    ]  # fmt: skip
    assert [(piece.text, piece.head) for piece in read("a | b\n---|---\n1 | 2")] == [("1 | 2", "a | b")]
    assert [(piece.text, piece.head) for piece in read("| 1 | 2 |\n| 3 | 4 |")] == [("1 | 2", ""), ("3 | 4", "")]


def test_the_rim_of_a_box_is_in_no_piece() -> None:
    """`:::tip` and `!!! note` are signs; what they enclose is read like anything else."""
    assert kinds(":::tip[Careful]\nThe pump is loud.\n:::\n\n!!! note\n    It is heavy too.") == [
        ("sentence", "The pump is loud."),
        ("sentence", "It is heavy too."),
    ]


def test_what_lies_too_deep_is_read_as_text() -> None:
    """No words are lost where lists or quotations are nested deeper than anybody nests them."""
    passage = "> " * 60 + "The deepest words of all."

    assert sentences_of(passage) == ["The deepest words of all."]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The works in St. Louis built c. 500 arms. Then they closed.", 2),
        ("See fig. 3 and vol. 2 of it. Is it no. 5? It said no. The arm stopped.", 4),
        ("Dr. Okafor met J. Smith, e.g. on Mondays. He left.", 2),
        ("Type `Go. Stop. Go.` and wait. It stops.", 2),
        ('He said "Stop!" Then **it stopped.** It did.', 3),
        ("机器人停止。它等待！然后继续。", 3),
        ("یہ روبوٹ ہے۔ یہ چلتا ہے۔", 2),
        ("يتوقف الروبوت. ثم ينتظر. هل ينتظر؟ نعم.", 4),
        ("הרובוט עוצר. הוא ממתין.", 2),
        ("रोबोट रुकता है। वह प्रतीक्षा करता है.", 2),
        ("रोबोट रुकता है. वह प्रतीक्षा करता है.", 2),
        ("로봇이 멈춥니다. 그리고 기다립니다.", 2),
        ("Το ρομπότ σταματά. Περιμένει. Łódź is a town. Écrivez.", 4),
        ("It takes 5 min. and 3 sec. of it. über is no beginning.", 1),
        ("Version 2.5 runs at 10.5 Hz. It is fast…  Very fast.", 3),
        ("Its middle is at 25 °C. Keep it closed, says J. Smith.", 2),
    ],
)
def test_where_sentences_end(text: str, sentences: int) -> None:
    """Not after an abbreviation, not inside code, and in every script by its own signs."""
    assert len(split_sentences(text)) == sentences
    assert "".join(" ".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("sentence", "is_statement"),
    [
        ("机器人在门前停止。", True),
        ("是的。", False),
        ("机器人在门前停止吗？", False),
        ("机器人在门前停止的步骤：", False),
        ("ROS 2 は速いです。", True),
        ("هل يتوقف الروبوت الآن؟", False),
        ("It works.", False),
    ],
)
def test_what_states_something_in_every_script(sentence: str, is_statement: bool) -> None:
    """Characters are counted where no spaces separate words; questions and leads end in the signs of their script."""
    assert states(sentence) is is_statement


def test_statements_are_plain_and_small() -> None:
    """Halves of a sentence with a semicolon, cells with their heads, lines of code; anchors and markup are gone."""
    passage = "## Arms {#arms}\n\nIt is **fast**; it is `loud`.\n\n| Arm | Mass |\n|---|---|\n| A | 8 kg |\n\n"
    passage += "```\nx = 1\n\ny = 2\n```"

    assert list(statements_of(passage)) == [
        ("Arms", "heading"),
        ("It is fast;", "prose"),
        ("it is `loud`.", "prose"),
        ("Arm A, Mass 8 kg", "row"),
        ("x = 1", "code"),
        ("y = 2", "code"),
    ]


def test_a_table_of_things_compared_is_read_by_its_columns() -> None:
    """Where the corner is empty the heads name the things, and the first cell of a row what is said of them."""
    passage = "| | Arm A | Arm B |\n|---|---|---|\n| Mass | 8 kg | 9 kg |\n| Reach | 1 m | 2 m |"

    assert [text for text, _ in statements_of(passage)] == [
        "Arm A, Mass 8 kg, Reach 1 m",
        "Arm B, Mass 9 kg, Reach 2 m",
    ]


def test_a_sentence_may_run_through_a_formula() -> None:
    """On a line of its own it is part of the sentence; a formula of several lines is a statement by itself."""
    inline = "The force is\n$$F = m a$$\nat any time."
    apart = "The force is\n$$\nF = m a\n$$\nat any time."

    assert [text for text, _ in statements_of(inline)] == ["The force is F = m a at any time."]
    assert [text for text, _ in statements_of(apart)] == ["The force is", "F = m a", "at any time."]


def test_a_passage_is_read_once() -> None:
    """Whoever asks again gets the same reading."""
    assert read(PASSAGE) is read(PASSAGE)
    assert blocks_of(PASSAGE) is blocks_of(PASSAGE)


def _lines(line: str) -> Callable[[int], str]:
    return lambda size: line * (size // len(line))


HOSTILE: dict[str, Callable[[int], str]] = {
    "stars": _lines("*"),
    "ticks": _lines("`a"),
    "quotation signs": _lines("> "),
    "item signs": _lines("- "),
    "staircase": lambda size: "".join("  " * (at % 200) + "- a\n" for at in range(size // 200)),
    "bars": _lines("|"),
    "rows": _lines("| a | b |\n"),
    "wide table": lambda size: "|a" * (size // 8) + "|\n" + "|-" * (size // 8) + "|\n" + "|c|\n" * (size // 8),
    "fences": _lines("```a\n~~~b\n"),
    "formulas": _lines("$$ a\n"),
    "rims": _lines("!!! a\n    b\n"),
    "brackets": _lines("[a](b"),
    "abbreviations": _lines("e.g. A "),
    "stops": _lines(". "),
    "blanks after a stop": lambda size: "." + " " * size + "x",
    "setext": lambda size: "a\n" * (size // 2) + "---",
    "braces": lambda size: "# a {#" + "{" * size + "}",
    "ideographic stops": _lines("。"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_grows_with_the_length_of_the_text_alone(name: str) -> None:
    """Four times as much of anything takes about four times as long, however it was made to be slow."""
    gc.disable()  # its passes grow with all that is alive, which is not the reader's doing
    try:
        small, large = (_cpu_seconds(HOSTILE[name](size)) for size in (64_000, 256_000))
    finally:
        gc.enable()

    assert large < 10 * max(small, 0.02)


def _cpu_seconds(text: str) -> float:
    blocks_of.cache_clear()
    read.cache_clear()
    start_time = time.process_time()
    for _ in read(text):
        pass
    for _ in statements_of(text):
        pass
    return time.process_time() - start_time


def test_blocks_keep_their_lines() -> None:
    """Each line says where its words stand, whatever signs precede them."""
    passage = "1. > - [ ] the *first* words\n   >   and the others"
    [block] = blocks_of(passage)

    assert isinstance(block, Block)
    assert [passage[line.start : line.end] for line in block.lines] == ["the *first* words", "and the others"]


@pytest.mark.parametrize("table", ["|---|---|\n|---|---|", "|---|---|\n|---|---|\n| a | b |"])
def test_rules_are_no_header(table: str) -> None:
    """A table that begins with two rules has no header, and can be read all the same."""
    assert [(piece.text, piece.head) for piece in read(table)] == [("a | b", "")] * ("a" in table)


@pytest.mark.parametrize("end", ["", "\n", "\n```", "\n```\n"])
@pytest.mark.parametrize("sign", ["", "> "])
def test_a_listing_has_all_its_lines_whatever_ends_it(sign: str, end: str) -> None:
    """Also the last one of a listing that nothing closes."""
    [listing] = read(f"{sign}```\n{sign}x = 1\n{sign}y = 2" + end.replace("\n```", f"\n{sign}```"))

    assert listing.text == "x = 1\ny = 2"


def test_a_link_in_a_wrapped_sentence_is_a_part_of_it() -> None:
    """Where lines are wrapped, a link may fill one; after a whole sentence such a line is only a link."""
    wrapped = "The files are merged. See\n[Inheritance](a.md)\nfor details.\n[Next page](b.md)"

    assert [(piece.kind, piece.text) for piece in read(wrapped)] == [
        ("sentence", "The files are merged."),
        ("sentence", "See [Inheritance](a.md) for details."),
        ("link", "[Next page](b.md)"),
    ]
