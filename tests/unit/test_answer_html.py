"""Answers as HTML, whole and while they are written."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.grounding.answer_claims import claims_of
from lectern.rendering.answers import ClaimSpan, GrowingAnswer, answer_html, passage_html

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
        take(blocks, answer, text[place : place + length])
        place += length
    for block in answer.rest():
        blocks[block.index] = block.html
    return answer, blocks


def take(blocks: dict[int, str], answer: GrowingAnswer, piece: str) -> None:
    """Add a piece and apply the blocks that it changes, as a page does."""
    for block in answer.add(piece):
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
        for block in answer.judge(claim):
            blocks[block.index] = block.html
    assert "".join(blocks[index] for index in sorted(blocks)) == answer_html(ANSWER, sources=100, claims=claims)


def test_a_line_that_is_being_written_closes_no_block() -> None:
    """`* **` looks like a rule until the item's text comes; the list before it goes on."""
    answer, blocks = GrowingAnswer(), dict[int, str]()
    for piece in ("* **One** is long enough to show\n", "* **", " ", "\n".replace("\n", ""), "Two** comes after it.\n"):
        take(blocks, answer, piece)
    for block in answer.rest():
        blocks[block.index] = block.html

    assert [html.count("<li>") for html in blocks.values()] == [2]


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
