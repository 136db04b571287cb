"""Pages of lessons keep what was indexed: every word, every anchor, every line; and no text makes them slow."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.reading.blocks import read_body
from lectern.reading.chunking import DEFAULT_RULES
from lectern.reading.files import lesson_text
from lectern.rendering.dialects import readable
from lectern.rendering.elements import parse, without_marks
from lectern.rendering.lesson_parser import lesson_parser
from lectern.rendering.lessons import LessonInBook, indexed_file
from lectern.rendering.markdown import Context, render_tokens
from tests.conftest import SAMPLE_BOOK, SHARED_DATA
from tests.lesson_pages import Visible, anchors_of, lessons_in, missing_words, page_of

NO_BLOCK = re.compile(r"[ \t>]*(?:\[[^\]]+\]:|:::|///|--8<|</?\w)")  # labels of links, and signs of boxes


def check_page(lesson: LessonInBook, *, from_file: bool) -> None:
    """A page shows the words of its chunks, has their anchors, and covers their lines."""
    page = page_of(lesson, from_file=from_file)
    visible = Visible(page.html)
    name = f"{lesson.chunks[0].source_file} ({page.origin})"
    chunks = list(lesson.chunks)

    assert page.origin == ("file" if from_file else "index"), name
    assert {word for chunk in chunks for word in missing_words(chunk.text, visible.text)} == set(), name
    anchors = {unquote(url.partition("#")[2]) for url in anchors_of(chunks) if "#" in url}
    assert anchors <= set(visible.ids), name
    assert len(set(visible.ids)) == len(visible.ids), name
    assert {heading.anchor for heading in page.headings if heading.anchor} <= set(visible.ids), name
    uncovered = text_lines(lesson) - visible.lines
    assert uncovered == set(), name


def text_lines(lesson: LessonInBook) -> set[int]:
    """The lines of a lesson's chunks that a reader sees something of."""
    raw = indexed_file(lesson)
    assert raw is not None
    first = lesson.chunks[0]
    source = lesson_text(first.source_file, raw, DEFAULT_RULES)
    lines = read_body(source.body, mdx=first.source_file.endswith(".mdx")).lines
    wanted = {line for chunk in lesson.chunks for line in range(chunk.line_start, chunk.line_end + 1)}
    return {
        line for line in wanted if (text := lines[line - 1 - source.body_line]).strip() and not NO_BLOCK.match(text)
    }


@pytest.mark.parametrize("from_file", [True, False], ids=["file", "index"])
def test_pages_of_the_sample_book_lose_nothing(from_file: bool) -> None:
    """Every lesson of the sample book, from its file and from the index."""
    lessons = list(lessons_in(SAMPLE_BOOK))

    assert len(lessons) > 30
    for lesson in lessons:
        check_page(lesson, from_file=from_file)


@pytest.mark.data
@pytest.mark.parametrize("name", ["agentfactory", "curriculum", "handbook", "malformed", "robolearn/docs"])
@pytest.mark.parametrize("from_file", [True, False], ids=["file", "index"])
def test_pages_of_real_books_lose_nothing(name: str, from_file: bool) -> None:
    """Lessons of real books, up to forty of each."""
    folder = SHARED_DATA / f"book-{name}"
    count = sum(1 for _ in folder.rglob("*.md*"))

    for lesson in lessons_in(folder, step=max(1, count // 40)):
        check_page(lesson, from_file=from_file)


def html_of(text: str, site: str = "docusaurus", *, mdx: bool = False) -> str:
    """A body as HTML, without a book around it."""
    marked, mdx = readable(text, site=site, mdx=mdx)  # type: ignore[arg-type]  # the name of a site
    parser = lesson_parser(site, mdx=mdx)  # type: ignore[arg-type]  # the name of a site
    tokens = parse(parser, marked, {"attribute_lists": site == "mkdocs"})
    return without_marks(render_tokens(parser, tokens, Context(lines=True, image=lambda source: source)))


PIECES = (
    "<details>", "</details>", "<summary>", "</summary>", "<Tabs>", "</Tabs>", '<TabItem label="x">', "</TabItem>",
    "<b>", "</b>", "<kbd>", "</kbd>", "<table>", "<tr>", "<td>", "</td>", "</tr>", "</table>", "<ul>", "<li>", "</li>",
    "</ul>", "<br/>", '<img src="a.png" alt="b"/>', "<div class='warning'>", "</div>", "<pre>", "</pre>", "<p>", "</p>",
    "<Quiz questions={[{question: 'what is it'}]} />", ":::note Title\n", ":::\n", "::::\n", '!!! note "T"\n', "    ",
    "??? x\n", '=== "Tab"\n', "/// tab | a\n", "///\n", "> [!NOTE]\n", "> ", "- ", "1. ", "\n", "\n\n", "# ",
    "## a {#b}\n",
    "```\n", "~~~\n", "`", "*", "**", "_", "[", "](x)", "![", "[^1]", "[^1]: ", "$", "$$\n", "\\[\n", "\\]\n", "|",
    "|-|-|\n",
    "a | b\n", "--8<-- x\n", "import a from 'b'\n", "export const a = 1\n", "{/* c */}", "<!-- c -->", "word ",
    ": d\n", "\t",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=40), st.sampled_from(["docusaurus", "mkdocs", "mdbook", "plain"]))
def test_any_order_of_signs_gives_balanced_html(pieces: list[str], site: str) -> None:
    """However elements and signs are mixed, the HTML is well formed before it is sanitised, no mark is left over, and
    sanitising it again changes nothing."""
    text = "".join(pieces)
    marked, mdx = readable(text, site=site, mdx=False)  # type: ignore[arg-type]  # the name of a site
    parser = lesson_parser(site, mdx=mdx)  # type: ignore[arg-type]  # the name of a site
    tokens = parse(parser, marked, {})

    for row in (tokens, *(token.children for token in tokens if token.children)):
        path: list[str] = []
        for token in row:
            if token.nesting > 0:
                path.append(token.type.removesuffix("_open"))
            elif token.nesting < 0:
                assert path, text
                assert path.pop() == token.type.removesuffix("_close"), text
        assert path == [], text
    assert not re.search("[\ufdd0-\ufdef]", html_of(text, site)), text


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_lines_of_blocks_are_lines_of_the_text(pieces: list[str]) -> None:
    """No block claims a line that the text does not have."""
    text = "".join(pieces)

    assert max(Visible(html_of(text, "mkdocs")).lines, default=1) <= text.count("\n") + 1


UNITS = (
    "[", "*a ", "_a ", "`", "` a ", "$", "$$ a\n\n", "$$\n", "|", "|a|b|\n", "> ", ">", "> a\n", "\\[\n", "\\(", "<",
    "<b>",
    "<a href='x'>", "<div>", "<details>", "</details>", "<p> ", "<Tabs><TabItem label='x'>", "<table><tr><td>", "<pre>",
    ":::note\n", "!!! note\n", '=== "x"\n', "/// tab | x\n", "[^", "[^a]: ", "[a](", "![", "[x](y) ", "&", "{/* ",
    "<!-- ",
    "\\", "- ", "1. a\n", "# a\n", "a\n: b\n", "> [!NOTE]\n\n", "--8<-- x\n", "~~a", "a\n=\n", "\t", " ", "\n",
    "- [x] a\n",
    "import a from 'b'\n\n", "export const a = {\n", "<http://a", "a<br>", "<img src='a.png'/>", "```\n", "~~~x\n",
    "(" * 3,
)  # fmt: skip
SLOWEST_RATIO = 10  # four times the text takes four times as long; what is quadratic takes sixteen times


@pytest.mark.parametrize("site", ["docusaurus", "mkdocs"])
def test_the_time_is_linear_in_the_size(site: str) -> None:
    """A text of one sign, four times as long, takes about four times as long: never the square of it. The quickest of
    several runs counts, in seconds of the processor, because other processes only add time."""
    slow = {}
    for unit in UNITS:
        short, long = unit * (6_000 // len(unit)), unit * (24_000 // len(unit))
        for _ in range(4):
            ratio = seconds(long, site) / max(seconds(short, site), 0.004)
            slow[unit] = min(ratio, slow.get(unit, ratio))
            if slow[unit] < SLOWEST_RATIO:
                del slow[unit]
                break

    assert slow == {}


def seconds(text: str, site: str) -> float:
    """How long the processor takes for a text."""
    start = time.process_time()
    html_of(text, site)
    return time.process_time() - start


def test_deep_nesting_is_shown_flat(tmp_path: Path) -> None:
    """Boxes, lists and tags inside one another are rendered down to a depth; the words below are still there."""
    random.seed(17)
    boxes = "".join(f"{':' * (200 - depth)}note b{depth}\n" for depth in range(150)) + "innermost words\n"
    tags = "<details>" * 300 + "innermost words" + "</details>" * 300

    for text in (boxes, tags):
        assert "innermost words" in html_of(text)
