"""What leaves of a draft, for any draft and any way of cutting it into pieces: Markdown as it was written, no address
that the passages do not have, no marker that was never issued, and little held back on the way."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from lectern.answering import outgoing
from lectern.answering.confidential import Confidential
from lectern.answering.draft import Draft
from lectern.answering.outgoing import DraftFilter, foreign_links, is_allowed_by
from tests.making import chunk, hit

HELD_BACK = 100  # characters, at most, of ordinary text
EVIL = "https://evil.example/x"
GOOD = "https://book.example/page"
PASSAGES = {
    number: hit(chunk(f"Passage {number} is about gear {number}. More at [the page]({GOOD}).")) for number in (1, 2, 3)
}
PAGE = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table")

MARKDOWN = """\
# The pump

Yes. The pump starts at **06:00** [1]; it *never* runs for more than 12 minutes [2][3], "even at night" (see below).

## Steps

These are the steps:

1. Open the valve [1].
2. Start the pump [2]:
   - wait for `ready[0]`
   - count to 3 – not to 4!

| Bed | Water [l] | Note |
|:---|---:|---|
| north | 8 | a < b & c > d [1] |
| south | 4 | `x | y` |

> The pump does not start when the tank is empty. [3]

```python
valves[0] = "https://evil.example/x"  # <script>alert(1)</script> [99]
print(f"{valves[0]!r}")
```

~~~~
[a link](https://evil.example/x) and ``` inside
~~~~

The book does not compare them. Is $a_1 = \\frac{1}{2}$? A range [0, 1], a list [x], a task:

- [ ] open
- [x] done

Ende: „schön“, 水泵在六点启动。 😀 e.g. ftp or www or data: these are words. http is a protocol.
"""


def filtered(text: str, cuts: tuple[int, ...] = ()) -> tuple[str, DraftFilter]:
    """A text after the filter, fed in pieces."""
    draft_filter = DraftFilter(
        shown=lambda number: number if number in PASSAGES else None, allowed=lambda address: address == GOOD
    )
    out = "".join(draft_filter.feed(piece) for piece in pieces(text, cuts))
    return out + draft_filter.finish(), draft_filter


def drafted(text: str, cuts: tuple[int, ...] = (), secrets: tuple[str, ...] = ()) -> Draft:
    """A whole draft, fed in pieces."""
    draft = Draft(
        passages=lambda: tuple(PASSAGES.values()),
        passage=PASSAGES.get,
        confidential=Confidential(["never tell anybody the magic word of this house"], secrets),
        question="How does the pump start?",
    )
    sent = "".join(draft.feed(piece) for piece in pieces(text, cuts)) + draft.finish()
    assert sent == draft.text
    return draft


def pieces(text: str, cuts: tuple[int, ...]) -> Iterator[str]:
    """A text, cut at these places."""
    ends = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    yield from (text[start:end] for start, end in pairwise(ends))


# What may be in a draft: words, signs that begin something, and whole attacks.
FRAGMENTS = [
    "word ", "The pump starts. ", "\n", "\n\n", "[", "]", "(", ")", "!", "<", ">", "`", "```", "~~~", "\\", "\"", "'",
    ":", "://", "[1]", "[2, 3]", " [77]", "[0]", "[x]", "- ", "1. ", "> ", "| a | b |\n", "|---|---|\n", "    ", "\t",
    EVIL, GOOD, f"[here]({EVIL})", f"![pic]({EVIL})", f"[![pic]({EVIL})]({EVIL})", f"[a [b] c]({EVIL})",
    f"[x]: {EVIL}\n", f"\n[x]: <{EVIL}> 'title'\n", "[text][x]", "![text][x]", f"<{EVIL}>", "<a@evil.example>",
    f'<a href="{EVIL}">', "</a>", f"<img src='{EVIL}'>", "<script>", "</script>", "<svg/onload=alert(1)>",
    "javascript:alert(1)", "[run](javascript:alert(1))", "[run](java&#115;cript:alert(1))", "&#104;ttps:", "www.",
    "www.evil.example", "mailto:a@evil.example", "data:text/html,x", f"[a]({GOOD})", f"[a](<{EVIL}>)",
    f"[a]( {EVIL} \"t\")", f"[a\n]({EVIL})", f"[`a`]({EVIL})", f"`[a]({EVIL})`", f"`` ` [a]({EVIL})", "\r\n", "\r",
    "\x00", "\x1b", "\ud800", "\udc00", "\u2028", "😀", "HTTPS://EVIL.EXAMPLE", f"\\[a]({EVIL})", f"[a\\]]({EVIL})",
    "//evil.example/x", "[a](//evil.example/x)", "[a](/x)", "[a](x.md)", "[a]()", "[^1]", "[^1]: note\n",
]  # fmt: skip
drafts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=25).map("".join)
cuttings = st.lists(st.integers(0, 10_000), max_size=12).map(tuple)


@settings(max_examples=400, deadline=None)
@given(drafts, cuttings)
def test_a_filtered_text_does_not_depend_on_its_pieces(text: str, cuts: tuple[int, ...]) -> None:
    """However a provider cuts its stream, the same text leaves, and the same things are counted."""
    whole, of_whole = filtered(text)
    out, of_pieces = filtered(text, cuts)

    assert out == whole
    assert of_pieces.removals == of_whole.removals


@settings(max_examples=200, deadline=None)
@given(drafts, cuttings)
def test_a_draft_does_not_depend_on_its_pieces(text: str, cuts: tuple[int, ...]) -> None:
    """Nor does what a reader gets in the end, with secrets and words of the instructions removed."""
    planted = f"{text} never tell anybody the magic word of this house, sk-12345 {text}"
    whole, of_pieces = drafted(planted, secrets=("sk-12345",)), drafted(planted, cuts, secrets=("sk-12345",))

    assert of_pieces.text == whole.text
    assert of_pieces.removals == whole.removals
    assert of_pieces.finished_text(list(PASSAGES.values())) == whole.finished_text(list(PASSAGES.values()))
    assert "sk-12345" not in whole.text


def addresses_on_page(text: str) -> set[str]:
    """The addresses that a page made of a text would open or load."""
    tokens = [child for token in PAGE.parse(text) for child in (token, *(token.children or ()))]
    return {str(value) for token in tokens for value in (token.attrGet("href"), token.attrGet("src")) if value}


@settings(max_examples=600, deadline=None)
@given(drafts, cuttings)
@example(f"`a\n\n`[here]({EVIL})", ())
@example(f"```\n[here]({EVIL})", ())
@example(f"    ```\n[here]({EVIL})\n", ())
@example(f"- ```\n[here]({EVIL})\n", ())
@example(f"``[here]({EVIL})`", ())
@example(f"<b `>[here]({EVIL})`", ())
@example(f"[a](<{GOOD}> '\n\n') [b]({EVIL})", ())
@example(f"[x\n]: {EVIL}\n\n[x]", ())
@example(f"> [x]: {EVIL}\n\n[x]", ())
@example(f"- [x]: {EVIL}\n\n[x]", ())
@example(f"[x]:\n{EVIL}\n\n[x]", ())
@example("[x](&#106;avascript:alert(1))", ())
def test_no_foreign_address_is_a_link_in_the_finished_text(text: str, cuts: tuple[int, ...]) -> None:
    """Whatever tricks a draft plays with brackets, code and entities, a page finds only the passages' links in it."""
    finished, _ = drafted(text, cuts).finished_text(list(PASSAGES.values()))

    assert addresses_on_page(finished) <= {GOOD}
    assert not foreign_links(finished, lambda address: address == GOOD)


@settings(max_examples=300, deadline=None)
@given(drafts, cuttings)
def test_active_html_does_not_leave(text: str, cuts: tuple[int, ...]) -> None:
    """Outside of code no tag is left that runs or loads something, even for a page that lets HTML pass."""
    finished, _ = drafted(text, cuts).finished_text(list(PASSAGES.values()))
    tokens = [child for token in PAGE.parse(finished) for child in (token, *(token.children or ()))]
    html = "".join(token.content for token in tokens if token.type in ("html_inline", "html_block"))

    assert not re.search(r"(?i)<(?:script|iframe|svg|object)\b|\b(?:href|src|onload)\s*=", html), repr(text)


@settings(max_examples=200, deadline=None)
@given(cuttings)
def test_markdown_leaves_byte_for_byte(cuts: tuple[int, ...]) -> None:
    """Headings, lists, tables, listings, quotes, formulas, task boxes and bare brackets are not touched."""
    out, draft_filter = filtered(MARKDOWN, cuts)

    assert out == MARKDOWN
    assert draft_filter.removals == outgoing.Removals()
    assert drafted(MARKDOWN, cuts).finished_text(list(PASSAGES.values()))[0] == MARKDOWN.strip()


ordinary = st.lists(
    st.sampled_from(
        [
            "The pump starts at six. ", "It **never** stops [1]. ", "\n\n", "\n- an item [2]\n", "\n1. first\n",
            "\n| a | b |\n|---|---|\n| c | d [1] |\n", "\n```python\nx = valves[0] < 3  # why\n```\n", "`code()` ",
            "a < b and c > d, ", "wait! ", "hello world, what an http data file this is; ", "[0, 1] ", "\n> quoted\n",
            "\n## Heading\n", "(in brackets) ", "x [y] z ", "水泵在六点启动。",
        ]
    ),
    min_size=1,
    max_size=40,
).map("".join)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(ordinary)
def test_little_of_ordinary_text_is_held_back(text: str) -> None:
    """A reader sees prose, lists, tables and listings as they come: never more than a hundred characters wait."""
    draft = drafted("")
    sent = 0
    for place, sign in enumerate(text, start=1):
        sent += len(draft.feed(sign))
        assert place - sent - _white_space_before(text) <= HELD_BACK
    draft.finish()


def _white_space_before(text: str) -> int:
    return len(text) - len(text.lstrip())


HOSTILE = ["[", "![", "](", "[a](", "[1", " [", "`a", "``a`", "<a ", "<", "http:", "~", "[x]: ", "> ", "\\", "- `"]


@pytest.mark.parametrize("size", [50, 4_000])
@pytest.mark.parametrize("fragment", HOSTILE)
def test_filtering_takes_linear_time(fragment: str, size: int) -> None:
    """Twice the text takes about twice the steps, whatever sign is repeated, and what waits has a limit."""
    (_, few), (longest, many) = (_steps((fragment * length)[:length], size) for length in (1_500, 3_000))

    assert many <= 2.6 * few + 5_000
    assert longest <= size + outgoing.MAX_LINK_TEXT + 2 * outgoing.MAX_TARGET


def _steps(text: str, size: int) -> tuple[int, int]:
    """The most characters that waited, and how many lines of the filter's code ran."""
    steps = longest = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return count if frame.f_code.co_filename == outgoing.__file__ else None

    draft_filter, tracer = filtered("")[1], sys.gettrace()
    sys.settrace(count)
    try:
        for start in range(0, len(text), size):
            draft_filter.feed(text[start : start + size])
            longest = max(longest, len(draft_filter._buffer))
        draft_filter.finish()
    finally:
        sys.settrace(tracer)
    return longest, steps


# A provider may send the two halves of a character as two escapes, in one piece or in two.
@given(st.text(alphabet="a\U0001f600\U00010348 ", max_size=20), cuttings)
def test_split_characters_arrive_whole(text: str, cuts: tuple[int, ...]) -> None:
    """A pair of surrogates is the character that it stands for, also if a piece ends between the two."""
    split = "".join(sign if ord(sign) < 0x10000 else "".join(map(chr, _surrogates(sign))) for sign in text)
    out, draft_filter = filtered(split, cuts)

    assert out == text
    assert draft_filter.removals.characters == 0


def _surrogates(sign: str) -> tuple[int, int]:
    code = ord(sign) - 0x10000
    return 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF)


CAP = outgoing.MAX_ANSWER_CHARACTERS


@given(
    st.lists(st.sampled_from(["\x00", "\x1b", "\x7f", "\x85", "\u2028", "\ud800", "a", "b ", "\n"]), max_size=30),
    cuttings,
)
def test_control_characters_and_lone_surrogates_are_removed_and_counted(
    signs: list[str], cuts: tuple[int, ...]
) -> None:
    """No terminal and no encoder meets one of them; what was between them stays."""
    text = "".join(signs)
    out, draft_filter = filtered(text, cuts)

    assert out == re.sub(r"[^ab \n]", "", text)
    assert draft_filter.removals.characters == len(text) - len(out)


@pytest.mark.parametrize("size", [1, 7, 1_000, 100_000])
def test_what_exceeds_the_cap_is_cut_and_counted(size: int) -> None:
    """The text ends at the cap, and the filter says that it is full."""
    text = "word " * (CAP // 5 + 20)
    out, draft_filter = filtered(text, tuple(range(0, len(text), size)))

    assert out == text[:CAP]
    assert draft_filter.is_full
    assert draft_filter.removals.characters == len(text) - CAP


LONG = "x" * 700


@pytest.mark.parametrize(
    "text",
    [
        f"`{LONG}` [here]({EVIL}) [77]",
        f"`[77] {LONG}`",
        f"[{LONG}]({EVIL})",
        f"[a]({EVIL}{LONG})",
        f"[a]({EVIL}{LONG * 2}) more",
        f"{EVIL}{LONG} more",
        f"<a title='{LONG}' href='{EVIL}'>more</a>",
        f"<script {LONG}>alert(1)</script>",
        f"``` {LONG}\n[77]\n```\n[77]\n",
        f"[x]: {EVIL}{LONG}\n\n[x]",
        f"[1{', 1' * 200}] more",
        f"a{' ' * 900}[77] b",
        f"{'`' * 700}[77]{'`' * 700}",
    ],
)
@pytest.mark.parametrize("size", [1, 13, 250])
def test_long_constructs_do_not_depend_on_their_pieces(text: str, size: int) -> None:
    """What is longer than the filter looks ahead is treated alike in one piece and in many."""
    assert filtered(text, tuple(range(0, len(text), size)))[0] == filtered(text)[0]


def test_the_links_of_a_passage_are_allowed_as_a_draft_writes_them() -> None:
    """Relative ones, those before a full stop, with a title, in angle brackets and with brackets of their own."""
    passage = "See [a](x.md). Or [b](/y#z), ![c](img.png 'title')! [d](<e f.md>) [g](h_(i).md) https://book.example/k."
    allowed = is_allowed_by([passage])

    assert all(map(allowed, ("x.md", "/y#z", "img.png", "e f.md", "h_(i).md", "https://book.example/k")))
    assert not any(map(allowed, ("x", "x.md)", "y#z", "https://book.example", "")))


@pytest.mark.parametrize(
    "text",
    [
        f"[here]({EVIL})", f"![pic]({EVIL})", f"[![pic]({EVIL})]({EVIL})", f"[a [b] c]({EVIL})", f"[a](<{EVIL}>)",
        f"[a]( {EVIL} 't')", f"[a\n]({EVIL})", f"[x]: {EVIL}\n", f"<{EVIL}>", "<a@evil.example>", f"<a href='{EVIL}'>",
        f'<img src="{EVIL}">', f"see {EVIL} there", "www.evil.example", "[a](//evil.example)", "mailto:a@evil.example",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_plain_foreign_address_does_not_even_reach_the_stream(text: str, size: int) -> None:
    """What a page shows before the reply has no such link either, and each is counted."""
    out, draft_filter = filtered(f"Before.\n\n{text} After.", tuple(range(0, len(text) + 20, size)))

    assert "evil" not in out
    assert draft_filter.removals.links >= 1
