"""What leaves of a draft, for any draft and any way of cutting it into pieces: Markdown as it was written, no address
that the passages do not have, no marker that was never issued, and little held back on the way."""

from __future__ import annotations

import re
import sys
import time
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
from lectern.answering.outgoing import DraftFilter, is_allowed_by
from lectern.answering.page_view import active_html, foreign_links
from lectern.rendering.answers import answer_html
from lectern.text.markers import marker_spans
from lectern.text.page_markdown import MAX_SOURCES
from tests.making import chunk, hit, numbers_in

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
        is_given=PASSAGES.__contains__, reader_number=lambda number: number, allowed=lambda address: address == GOOD
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
    "```\n", "~~~~", "> ```\n", "- ```\n", "1. ```\n", "   ```\n", "    ```\n", "> ~~~\n", "<div>\n", "<pre>", "`a`",
    "<!--", "- [x]: ", "> [x]: ", "【", "】", "【1】", " 【2†source】", "【77】", "[Passage 1]", " [Sources 2 and 77]",
    "[x]:\n", "[x]: ", "(//evil.example)", "](x.md)", "script>", "href=x>", "[99]", "`<script>`",
    "<a href=\"]\">", f"[<script>]({GOOD})", f"[{'y' * 301}](//evil.example)", f"<a {' ' * 700}onclick=x>", "- a\n",
    "$x[1]$", "$", "$$", "\\(", "\\)", "\\[\n", "\n\\]\n", "\n\n    a[1]\n", "[[1], [2]]", "array[1]", "array[7][1]",
    "//evil.example/x", "[a](//evil.example/x)", "[a](/x)", "[a](x.md)", "[a]()", "[^1]", "[^1]: note\n",
    "[a](which is y)", "[a](//evil.example/\xa0b)", "[a](//evil.example/ 't\\' u')", "[a](b 'c' d)", "[a](<b c> d)",
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


@settings(max_examples=600, deadline=None)
@given(drafts, cuttings)
@example("- ```\n<script>", ())
@example("> ~~~\n<script>", ())
@example("   ```\nx\n   ```\n   <script>", ())
@example("```\n> ```\n```\n<script>", ())
@example("> a\n    ```\n[a](/x)", ())
@example("<div>\n```\n<script>", ())
@example("`a\n` <script> `b`", ())
@example("<[99]script>", ())
@example("[x]<script>(//evil.example)", ())
@example(f"`[a]({EVIL})`<script>`", ())
@example("[x]:\n<script><div>\n[x]", ())
@example("[x]: //evil.example https://evil.example\n\n[x]", ())
@example("    ```\n```\n[a](/x)", ())
@example("``` \n" * 301 + "<script>", ())
@example("[1]: //evil.example\n\n[1]", ())
@example("[x]: <>\n\n[x]", ())
@example("【1】(//evil.example)", ())
@example("【1】: //evil.example\n\n[1]", ())
@example("[Passage 1](//evil.example) [Passage 1]: //evil.example", ())
@example("array[0](//evil.example)", ())
@example("[[1]](//evil.example)(//evil.example)", ())
@example("array[0][1](//evil.example)", ())
@example("[x](//evil.example/\xa0b)", tuple(range(30)))
@example("[x](//evil.example 'it\\' is')", tuple(range(40)))
def test_the_stream_is_as_strict_as_the_reply(text: str, cuts: tuple[int, ...]) -> None:
    """A page that shows the stream finds neither a foreign link nor active HTML in it, in odd listings or elsewhere."""
    streamed = drafted(text, cuts).text

    assert not active_html(streamed)
    assert not foreign_links(streamed, is_allowed_by(passage.chunk.text for passage in PASSAGES.values()))


ACTIVE = f"<script src='x'>alert(1)</script> [here]({EVIL}) [99] {EVIL}"


@pytest.mark.parametrize(
    "listing",
    [
        f"```html\n{ACTIVE}\n```\n", f"~~~\n{ACTIVE}\n~~~~\n", f"````\n```\n{ACTIVE}\n```\n````\n",
        f"1. Type this:\n   ```\n   {ACTIVE}\n\n   x\n   ```\n2. Done.\n",
        f"10. Type this:\n\n    ```\n    {ACTIVE}\n    ```\n", f"- ```\n  {ACTIVE}\n  ```\n",
        f"> ```\n> {ACTIVE}\n>\n> x\n> ```\n", f"> - ~~~\n>   {ACTIVE}\n>   ~~~\n", f"```\n{ACTIVE}\n",
        f"- a\n  - b\n    ```\n    {ACTIVE}\n    ```\n", f"   ```\n   {ACTIVE}\n   ```\n", f"Type `{ACTIVE}` here.\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_listings_leave_byte_for_byte_wherever_they_are(listing: str, size: int) -> None:
    """In list items and quotes, with tildes, longer fences, or without an end: what is code for a page stays."""
    text = f"Before.\n\n{listing}"
    out, draft_filter = filtered(text, tuple(range(0, len(text), size)))

    assert out == text
    assert draft_filter.removals == outgoing.Removals()


@pytest.mark.parametrize(
    "target", ["//evil.example", "www.evil.example", "evil.example/path", "<evil.example>", "x.md 't'"]
)
@pytest.mark.parametrize("before", ["", "> ", "- ", "1. ", "> - ", "   "])
@pytest.mark.parametrize("gap", [" ", "\n"])
@pytest.mark.parametrize("label", ["x", "1", "y" * 400])
def test_definitions_of_foreign_links_do_not_reach_the_stream(label: str, gap: str, before: str, target: str) -> None:
    """With or without a scheme, in a list item or a quote, on one line or two."""
    out, draft_filter = filtered(f"See [it][{label}].\n\n{before}[{label}]:{gap}{target}\n\nAfter.")

    assert "evil" not in out
    assert "x.md" not in out
    assert out.endswith("After.")
    assert draft_filter.removals.links == 1


def test_a_word_in_brackets_before_a_sentence_is_no_definition() -> None:
    """A list of sources at the end of an answer, or a note, stays as it was written."""
    text = "It runs [1].\n\n[1]: Nodes and topics, lesson 1.\n[note]: see lesson 2\n- [pump]: starts at six\n"

    assert filtered(text)[0] == text


@pytest.mark.parametrize("note", ["[Note]: Recalibrate.", "[^1]: Note.", "[1]: Lessons", "[^2]: www", "[Größe]: zwölf"])
@pytest.mark.parametrize("size", [1, 1_000])
def test_a_note_of_one_word_is_shown(note: str, size: int) -> None:
    """A page would take it for the definition of a link and show nothing, so a space says that it is none."""
    text = f"It runs.\n\n{note}\n\nAfter."
    out, draft_filter = filtered(text, tuple(range(0, len(text), size)))

    assert out == text.replace("]:", "] :")
    assert note.partition(": ")[2] in PAGE.render(out)
    assert draft_filter.removals == outgoing.Removals()


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
            "\n## Heading\n", "(in brackets) ", "x [y] z ", "水泵在六点启动。", "\n[Note]:\n\n", "\n[Note]: see ",
            "f[x](which is y) ", "f[x](a ", "a <b and ", "a <b, ", "a ` tick ", "\n[the part ", "[the part\n", "[^1] ",
            "`two\nlines` ", "word " * 8,
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


HOSTILE = [
    " ",
    "\t",
    "\n",
    " \n",
    "x ",
    "[x]:\n",
    "<b a",
    "```\n",
    "> ```\n",
    "- ~~~\n",
    "]",
    "`<b src=x>`",
    "[",
    "![",
    "](",
    "[a](",
    "[1",
    " [",
    "`a",
    "``a`",
    "<a ",
    "<",
    "http:",
    "~",
    "[x]: ",
    "> ",
    "\\",
    "- `",
    "【",
    "【1",
    " 【1†",
    "a[0][0][0][0]",
    "[Passages 1 and ",
]


@pytest.mark.parametrize("size", [50, 4_000])
@pytest.mark.parametrize("fragment", HOSTILE)
def test_filtering_takes_linear_time(fragment: str, size: int) -> None:
    """Twice the text takes about twice the steps, whatever sign is repeated, and what waits has a limit."""
    (_, few), (longest, many) = (_steps((fragment * length)[:length], size) for length in (1_500, 3_000))

    assert many <= 2.6 * few + 5_000
    assert longest <= size + outgoing.MAX_LINK_TEXT + 2 * outgoing.MAX_TARGET


@pytest.mark.parametrize("fragment", HOSTILE)
def test_filtering_takes_linear_time_inside_of_patterns_too(fragment: str) -> None:
    """The time for four times the text, which comes in single characters, is far from sixteen times as much."""

    def seconds(length: int) -> float:
        text = ("x" + fragment * length)[:length]
        start = time.process_time()
        drafted(text, tuple(range(length)))
        return time.process_time() - start

    seconds(500)
    assert seconds(8_000) <= 10 * seconds(2_000) + 0.3


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
    st.lists(st.sampled_from(["\x00", "\x1b", "\x7f", "\x9f", "\ud800", "a", "b ", "\n"]), max_size=30),
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


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0c", "\x0b", "\r", "\r\n"])
@pytest.mark.parametrize("size", [1, 1_000])
def test_every_kind_of_line_break_is_one(sign: str, size: int) -> None:
    """Words on both sides stay apart, and nothing counts as removed."""
    text = f"One{sign}two{sign}{sign}three"
    out, draft_filter = filtered(text, tuple(range(0, len(text), size)))

    assert out == "One\ntwo\n\nthree"
    assert draft_filter.removals == outgoing.Removals()


def test_what_is_read_has_a_limit_too() -> None:
    """A draft that is nothing but what is taken out ends as well."""
    out, draft_filter = filtered("\x00" * (outgoing.MAX_DRAFT_CHARACTERS + 7) + "x")

    assert (out, draft_filter.is_full) == ("", True)
    assert draft_filter.removals.characters == outgoing.MAX_DRAFT_CHARACTERS + 8


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


@pytest.mark.parametrize(
    "text",
    ["f[x](which is y)", "[Fig. 2](see the picture below)", "![pic](a b)", "[a](b 'c' d)", "[a](<b c> d)", "[a](b\nc)"],
)
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_brackets_that_are_no_link_stay(text: str, size: int) -> None:
    """An address has no blanks, and only a title in quotes or brackets may follow it."""
    out, draft_filter = filtered(f"See {text} here.", tuple(range(0, len(text) + 20, size)))

    assert out == f"See {text} here."
    assert draft_filter.removals == outgoing.Removals()


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


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("【1】", "[1]"), ("【2†source】", "[2]"), ("【1†L3-L5】", "[1]"), ("【1, 3】", "[1][3]"),
        ("[Passage 1]", "[1]"), ("[passage 2]", "[2]"), ("[Source 1]", "[1]"), ("[rank 2]", "[2]"),
        ("[Rank: 2]", "[2]"), ("[Quelle 3]", "[3]"), ("[Document 1]", "[1]"), ("[doc2]", "[2]"), ("[Ref. 3]", "[3]"),
        ("[Passages 1 and 3]", "[1][3]"), ("[Sources 1, 2]", "[1][2]"), ("[Sources 1, 2, and 3]", "[1][2][3]"),
        ("[Passages 1-3]", "[1][2][3]"), ("[1†source]", "[1]"), ("[1 and 2]", "[1][2]"), ("【1】【2】", "[1][2]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_other_forms_of_markers_are_read(written: str, read: str, size: int) -> None:
    """Models write markers in several ways; a reader gets one."""
    text = f"The pump starts at six {written}. It stops.{written}"
    out, draft_filter = filtered(text, tuple(range(0, len(text), size)))

    assert out == f"The pump starts at six {read}. It stops.{read}"
    assert draft_filter.removals == outgoing.Removals()


@pytest.mark.parametrize(
    ("written", "read", "invented"),
    [
        ("【77】", "", 1), (" 【77†source】", "", 1), (" [Passage 77]", "", 1), (" [Sources 1 and 77]", " [1]", 1),
        (" [Sources 77, 78]", "", 2), (" [Source 0]", "", 1),
    ],
)  # fmt: skip
def test_other_forms_of_invented_markers_are_removed_and_counted(written: str, read: str, invented: int) -> None:
    """What was never issued does not leave, whatever its form."""
    out, draft_filter = filtered(f"It stops{written}.")

    assert out == f"It stops{read}."
    assert draft_filter.removals.invented_citations == invented


@pytest.mark.parametrize(
    "text",
    ["【note】", "【", "【1\n】", "[Passage one]", "[Sources]", "[source code 1]", f"【1†{'x' * 200}】", "[ranking 1]"],
)
@pytest.mark.parametrize("size", [1, 1_000])
def test_other_brackets_stay(text: str, size: int) -> None:
    """Words in brackets are no markers."""
    whole = f"It stops {text}."

    assert filtered(whole, tuple(range(0, len(whole), size)))[0] == whole


@pytest.mark.parametrize("index", ["array[0]", "argv[77] and", "grid[0][77]", "Größe[0]"])
@pytest.mark.parametrize("size", [1, 1_000])
def test_an_index_in_plain_text_stays(index: str, size: int) -> None:
    """Brackets that are glued to a word are a marker only if their number was issued."""
    text = f"The pump starts [1]. It is in {index}."
    out, draft_filter = filtered(text, tuple(range(0, len(text), size)))

    assert out == text
    assert draft_filter.removals == outgoing.Removals()
    assert drafted(text).finished_text(list(PASSAGES.values()))[0] == text


def test_a_marker_may_be_glued_to_its_word() -> None:
    """An issued number is a citation. After a script without spaces a number that was never issued is removed."""
    assert filtered("The pump starts[2].")[0] == "The pump starts[2]."
    assert filtered("The pump starts[2][77].")[0] == "The pump starts[2]."
    assert filtered("水泵在六点启动[77]。")[0] == "水泵在六点启动。"


NO_MARKERS = [
    "$x[0] = 1$", "$x[2]$", "\\(h[0] = 1\\)", "\\(h[2] + [3]\\)", "$$a[1] = b[2]$$", "in $$a[2]$$ and", "`a\nb[2]`",
    "matrix [[1, 2], [3, 4]]", "[[1], [2], [3]]", "ranges[0] is", "a vector [0] and",
    "``a[2] ` b[3]``", "`` ` [2] ``",
]  # fmt: skip
NO_MARKER_BLOCKS = [
    "    x = a[2]\n    y = [3]", "\tx = a[2]", "$$\nx[2] = [3]\n$$", "\\[\nx[2] = [3]\n\\]", "```\na[2]\n```",
    "~~~\na[2]\n\nb[3]\n~~~",
    "- x\n\n      a[2]", "    x = a[2]\n\n    <b> [here](/x) [3]",
]  # fmt: skip


@pytest.mark.parametrize("text", [f"It is {span} so." for span in NO_MARKERS] + NO_MARKER_BLOCKS)
@pytest.mark.parametrize("size", [1, 3, 1_000])
def test_indices_in_formulas_and_code_stay(text: str, size: int) -> None:
    """In the stream and in the reply, given or not; a marker behind them is one, and the first."""
    whole = f"Before.\n\n{text}\n\nAfter [3]."
    draft = drafted(whole, tuple(range(0, len(whole), size)))

    assert draft.text == whole.replace("After [3]", "After [1]")
    assert draft.removals == outgoing.Removals()
    assert draft.numbers == {3: 1}
    assert [draft.text[slice(*span)] for span in marker_spans(draft.text)] == ["[1]"]
    assert numbers_in(draft.text) == [1]


@pytest.mark.parametrize("text", ["It costs $5 and $6 [2].", "Set $HOME and $PATH [2].", "a ` b [2].", "x \\\\[2]"])
def test_a_marker_behind_a_single_sign_is_one(text: str) -> None:
    """What only looks like the beginning of a formula or of code."""
    assert drafted(text).numbers == {2: 1}
    assert numbers_in(drafted(text).text) == [1]


@settings(max_examples=600, deadline=None)
@given(drafts)
def test_markers_are_what_a_page_shows_as_citations(text: str) -> None:
    """The positions of markers in a text that leaves and the citations of its page agree in number and order."""
    text = drafted(text).text
    on_page = re.findall(r'data-source="(\d+)"', answer_html(text, sources=MAX_SOURCES))

    assert [text[start + 1 : end - 1].lstrip("0") for start, end in marker_spans(text)] == [
        number.lstrip("0") for number in on_page
    ]
