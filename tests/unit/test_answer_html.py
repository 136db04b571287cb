"""Answers as HTML, whole and while they are written."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lectern.grounding.answer_claims import claims_of
from lectern.rendering.answers import AnswerBlock, ClaimSpan, GrowingAnswer, answer_html
from lectern.rendering.passages import passage_html

ANSWER = """\
Yes. The *book* says so [1].

## Steps

1. First **do it.** [1]
2. Then compute $x^2$ [2]

   A paragraph of the item.

| Part | Mass |
|---|--:|
| arm | 2 kg [1] |

```python title="a.py"
x = ranges[0]

y = 2
```

- [x] done
- [ ] open

It costs $5 or $6 [9].
"""
HOSTILE = (
    "[",
    "*a ",
    "`",
    "$a ",
    "|",
    "> ",
    "![a",
    "\\(",
    "- ",
    "_a_",
    "[a](",
    "[1] ",
    "a\n",
    "&amp;",
    "~~a",
    "**",
    "<",
)


class Elements(HTMLParser):
    """The elements and attributes of an HTML text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


def grown(text: str, seed: int, longest: int) -> tuple[GrowingAnswer, dict[int, str]]:
    """The blocks of a text that came in pieces of random length."""
    pieces = random.Random(seed)
    answer, blocks, place = GrowingAnswer(), dict[int, str](), 0
    while place < len(text):
        length = pieces.randint(1, longest)
        apply(blocks, answer.add(text[place : place + length]))
        place += length
    apply(blocks, answer.rest())
    return answer, blocks


def take(blocks: dict[int, str], answer: GrowingAnswer, piece: str) -> None:
    """Add a piece, show it at once, and apply the blocks that it changes, as a page does."""
    apply(blocks, [*answer.add(piece), *answer.rest()])


def apply(blocks: dict[int, str], changed: list[AnswerBlock]) -> None:
    """Change blocks as a page does."""
    for block in changed:
        blocks[block.index] = block.html
        for index in [index for index in blocks if index >= block.count]:
            del blocks[index]


def test_an_answer_has_its_elements() -> None:
    """Emphasis, headings, lists, tables, listings, formulas and tasks become elements; markers of sources become
    citations, and other brackets and prices stay text."""
    html = answer_html(ANSWER, sources=2)

    tags = [tag for tag, _ in Elements(html).found]
    assert {"em", "strong", "h2", "ol", "table", "figure", "figcaption", "math", "ul"} <= set(tags)
    assert re.findall(r'data-source="(\d+)"', html) == ["1", "1", "2", "1"]
    assert "[9]" in html
    assert "$5 or $6" in html
    assert '<span class="task done"></span> done' in html
    assert 'class="align-right"' in html
    assert "style=" not in html


def test_brackets_in_code_cite_nothing() -> None:
    """`ranges[0]` and `[1]` in code and listings stay code."""
    html = answer_html("Use `a[1]`.\n\n```\nb[1]\n```\n", sources=1)

    assert "data-source" not in html
    assert "<code>a[1]</code>" in html


def test_claims_end_where_they_end() -> None:
    """Each claim has one mark, a row's inside its last cell and a listing's on its figure, and marks change nothing
    else in the HTML."""
    claims = [ClaimSpan(number, claim.start, claim.end) for number, claim in enumerate(claims_of(ANSWER))]

    html = answer_html(ANSWER, sources=2, claims=claims)

    marks = [int(number) for number in re.findall(r'data-claim="(\d+)"', html)]
    assert sorted(marks) == list(range(len(claims)))
    assert re.search(r'<td class="align-right">2 kg <a [^>]*>1</a><span class="claim"', html)
    assert re.search(r'<figure class="listing"[^>]* data-claim=', html)
    assert without_claims(html) == answer_html(ANSWER, sources=2)


def without_claims(html: str) -> str:
    """The HTML without the marks of claims."""
    return re.sub(r'<span class="claim" data-claim="\d+"></span>| data-claim="\d+"', "", html)


@pytest.mark.parametrize(("seed", "longest"), [(1, 1), (2, 9), (3, 40), (4, 400)])
def test_a_growing_answer_ends_as_the_whole(seed: int, longest: int) -> None:
    """However the text is cut into pieces, the blocks of a stream are those of the whole answer, with its claims."""
    answer, blocks = grown(ANSWER, seed, longest)

    assert "".join(blocks[index] for index in sorted(blocks)) == answer_html(ANSWER, sources=100)

    claims = [ClaimSpan(number, claim.start, claim.end) for number, claim in enumerate(claims_of(ANSWER))]
    for claim in claims:
        apply(blocks, answer.judge(claim))
    assert "".join(blocks[index] for index in sorted(blocks)) == answer_html(ANSWER, sources=100, claims=claims)


def test_a_line_that_is_being_written_closes_no_block() -> None:
    """`* **` looks like a rule until the item's text comes; the list before it goes on."""
    answer, blocks = GrowingAnswer(), dict[int, str]()
    for piece in ("* **One** is long enough to show\n", "* **", " ", "Two** comes after it.\n"):
        take(blocks, answer, piece)

    assert [html.count("<li>") for html in blocks.values()] == [2]


LISTING = "```python\n" + "".join(f"value_{line} = {line}  # ok\n\n" for line in range(200)) + "```\n"
TABLE = "| Part | Mass |\n|---|---|\n" + "".join(f"| arm {row} | {row} kg |\n" for row in range(300))
LOOSE_LIST = "".join(f"{row}. item {row} of the list\n\n" for row in range(1, 200))
QUOTE = "> The arm moves.\n>\n> * It stops.\n>\n" * 100


@pytest.mark.parametrize("text", [LISTING, TABLE, LOOSE_LIST, QUOTE], ids=["listing", "table", "list", "quote"])
@pytest.mark.parametrize("by_line", [True, False])
def test_rendering_is_linear_in_a_long_block(text: str, by_line: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long listing, table, list or quote that comes by lines or by words is not rendered anew with each of them."""
    rendered = 0
    parse = MarkdownIt.parse

    def counted(parser: MarkdownIt, source: str, env: dict[str, Any]) -> list[Token]:
        nonlocal rendered
        rendered += len(source)
        return parse(parser, source, env)

    monkeypatch.setattr(MarkdownIt, "parse", counted)
    answer, blocks = GrowingAnswer(), dict[int, str]()
    for piece in re.findall(r".*\n" if by_line else r"\s*\S+|\s+", text):
        apply(blocks, answer.add(piece))
    apply(blocks, answer.rest())
    monkeypatch.undo()

    assert rendered < 12 * len(text)
    assert "".join(blocks[index] for index in sorted(blocks)) == answer_html(text, sources=100)


@pytest.mark.parametrize("text", [LISTING, TABLE, LOOSE_LIST], ids=["listing", "table", "list"])
def test_the_paragraph_after_a_long_block_is_shown_as_it_begins(text: str) -> None:
    """It does not wait until it is a part of the long block, and that block is not rendered again with it."""
    answer, blocks = GrowingAnswer(), dict[int, str]()
    apply(blocks, answer.add(text))
    for piece in ("\n", "The", " arm"):
        apply(blocks, answer.add(piece))
    assert "The" in blocks[1]

    later = [*answer.add(" is heavy and slow to move."), *answer.rest()]
    assert {block.index for block in later} == {1}


def test_a_verdict_after_an_unfinished_line_keeps_all_blocks() -> None:
    """The last line of an answer has no end, and may have been thought to be a part of the block before it."""
    answer, blocks = GrowingAnswer(), dict[int, str]()
    for piece in ("P1.\n\n", "P2.\n\n", "- item"):
        take(blocks, answer, piece)
    apply(blocks, answer.judge(ClaimSpan(0, 0, 3)))
    assert sorted(blocks) == [0, 1, 2]
    apply(blocks, answer.judge(ClaimSpan(1, 12, 16)))

    claims = [ClaimSpan(0, 0, 3), ClaimSpan(1, 12, 16)]
    assert "".join(blocks[index] for index in sorted(blocks)) == answer_html(
        "P1.\n\nP2.\n\n- item", sources=9, claims=claims
    )


def test_footnotes_are_read_where_they_are_written() -> None:
    """A mark is a letter, so that nobody takes it for the number of a source; the note is a paragraph with that letter,
    though it is one word, which Markdown would take for an address."""
    html = answer_html(
        "It is 1.25[^1]. The book says so [1].\n\n[^1]: Without *acks*\n  that are lost.\n[^b]: word", sources=1
    )

    assert '<p>It is 1.25<sup class="note-mark">a</sup>. The book' in html
    assert '<p class="note-text"><sup class="note-mark">a</sup> Without <em>acks</em>\nthat are lost.</p>' in html
    assert '<p class="note-text"><sup class="note-mark">b</sup> word</p>' in html
    assert html.count('class="cite"') == 1


def test_a_second_verdict_for_a_claim_adds_no_mark() -> None:
    """A later verdict replaces the one before it, and the block need not be sent again."""
    answer = GrowingAnswer()
    answer.add("The arm weighs two kilograms.")
    [block] = answer.judge(ClaimSpan(0, 0, 29))

    assert block.html.count("data-claim") == 1
    assert answer.judge(ClaimSpan(0, 0, 29)) == []
    [shorter] = answer.judge(ClaimSpan(0, 0, 28))
    assert shorter.html.count("data-claim") == 1


@given(st.text(alphabet=st.sampled_from(list("ab [](){}<>*_`$|!#-+1.\\\n\"'&:/~=")), max_size=120))
def test_no_text_becomes_an_active_element(text: str) -> None:
    """Whatever a model writes, only known elements without handlers, styles or foreign addresses come out, streamed or
    whole."""
    _, blocks = grown(text, 5, 7)
    for html in (answer_html(text, sources=3), passage_html(text), "".join(blocks.values())):
        for tag, attributes in Elements(html).found:
            assert tag not in {"script", "style", "iframe", "object", "embed", "form", "input", "svg", "img", "link"}
            assert not any(name.startswith("on") or name in {"style", "src", "srcdoc"} for name in attributes)
            assert re.match(r"https?://|mailto:|#source-|$", attributes.get("href") or "", re.IGNORECASE)


@pytest.mark.parametrize("sign", HOSTILE)
def test_hostile_text_stays_cheap(sign: str) -> None:
    """A text of nothing but Markdown signs is shown, and its HTML is at most a constant times as long."""
    text = sign * (20_000 // len(sign))

    html = answer_html(text, sources=2)

    assert len(html) < 12 * len(text) + 1_000
