"""Chunks: where they are cut, what they carry, and that nothing is lost on the way."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lectern.domain.chunks import Chunk
from lectern.reading.chunking import ReadingRules, balanced, open_fence
from tests.unit.reading.folders import chunks, read, words

SMALL = ReadingRules(target_tokens=60, short_tokens=12, max_chars=700)


def tokens(text: str) -> int:
    """The design's estimate."""
    return round(len(text.split()) * 1.3)


def all_words(lesson_chunks: tuple[Chunk, ...]) -> list[str]:
    """Words of all chunks in order."""
    return [word for chunk in lesson_chunks for word in chunk.text.split()]


def test_one_chunk_per_section(tmp_path: Path) -> None:
    """A section of some length is a chunk, with its heading line in the text."""
    text = f"# Title\n\n{words(80, 'a')}\n\n## One\n\n{words(90, 'b')}\n\n## Two\n\n{words(100, 'c')}\n"

    lesson_chunks = chunks(tmp_path, text)

    assert [chunk.section_title for chunk in lesson_chunks] == ["Title", "One", "Two"]
    assert [chunk.text.split("\n")[0] for chunk in lesson_chunks] == ["# Title", "## One", "## Two"]
    assert [(chunk.line_start, chunk.line_end) for chunk in lesson_chunks] == [(1, 3), (5, 7), (9, 11)]


def test_trail_title_breadcrumb_and_url(tmp_path: Path) -> None:
    """The headings above, the nearest one, the whole way, and an address that opens at the section."""
    text = (
        f"# Title\n\n{words(80)}\n\n## Big *One*\n\n{words(80)}\n\n### Inner\n\n{words(80)}\n\n## Two\n\n{words(80)}\n"
    )

    lesson_chunks = chunks(tmp_path, text, file="module-1-a/1-c/1-a.md")

    assert [chunk.trail for chunk in lesson_chunks] == [
        ("Title",),
        ("Title", "Big One"),
        ("Title", "Big One", "Inner"),
        ("Title", "Two"),
    ]
    assert [chunk.section_title for chunk in lesson_chunks] == ["Title", "Big One", "Inner", "Two"]
    assert lesson_chunks[2].breadcrumb == "A › C › Title › Big One › Inner"
    assert [chunk.url.partition("#")[2] for chunk in lesson_chunks] == ["title", "big-one", "inner", "two"]


def test_breadcrumbs_repeat_nothing(tmp_path: Path) -> None:
    """An overview is not named twice, and a heading that only repeats the lesson's title is left out."""
    front = "---\ntitle: 'Lesson 1.1: Nodes and Topics'\n---\n"
    text = f"{front}# Nodes and Topics\n\n{words(80)}\n\n## Deep\n\n{words(80)}\n"
    (tmp_path / "module-1-x" / "chapter-2-graph").mkdir(parents=True)
    (tmp_path / "module-1-x" / "chapter-2-graph" / "README.md").write_text("# The Graph\n\nAn overview of the graph.\n")

    lesson_chunks = chunks(tmp_path, text, file="module-1-x/chapter-2-graph/01-a.md")

    assert [chunk.breadcrumb for chunk in lesson_chunks] == [
        "X › The Graph › Lesson 1.1: Nodes and Topics",
        "X › The Graph › Lesson 1.1: Nodes and Topics › Deep",
    ]
    assert [chunk.trail for chunk in lesson_chunks] == [
        ("Lesson 1.1: Nodes and Topics", "Nodes and Topics"),
        ("Lesson 1.1: Nodes and Topics", "Nodes and Topics", "Deep"),
    ]


def test_text_before_any_heading_has_no_section_title(tmp_path: Path) -> None:
    """None means exactly that; the trail is the lesson's title and the address the page."""
    lesson_chunks = chunks(tmp_path, f"---\ntitle: T\n---\n{words(80)}\n\n# Head\n\n{words(80)}\n")

    assert [chunk.section_title for chunk in lesson_chunks] == [None, "Head"]
    assert lesson_chunks[0].trail == ("T",)
    assert "#" not in lesson_chunks[0].url
    assert lesson_chunks[0].line_start == 4


def test_short_neighbours_share_a_chunk_under_their_common_heading(tmp_path: Path) -> None:
    """Named by the heading above them, opened where the first begins."""
    short = "### A\n\nshort a here\n\n### B\n\nshort b here"
    text = f"# T\n\n{words(90)}\n\n## P\n\n{words(90)}\n\n{short}\n\n## Q\n\n{words(90)}\n"

    lesson_chunks = chunks(tmp_path, text)
    shared = lesson_chunks[2]

    assert [chunk.section_title for chunk in lesson_chunks] == ["T", "P", "P", "Q"]
    assert shared.text == short
    assert shared.trail == ("T", "P")
    assert shared.url.endswith("#a")


def test_a_parents_short_text_shares_with_its_children(tmp_path: Path) -> None:
    """The common heading is then the parent itself."""
    lesson_chunks = chunks(
        tmp_path, f"# T\n\n{words(90)}\n\n## P\n\nfew words\n\n### A\n\nalso few\n\n## Q\n\n{words(90)}\n"
    )

    assert [chunk.section_title for chunk in lesson_chunks] == ["T", "P", "Q"]


def test_a_heading_without_text_goes_with_what_follows(tmp_path: Path) -> None:
    """No section is dropped, none stands alone as a bare heading, and the section keeps its own name."""
    text = f"# T\n\n## Bare\n\n### Deep\n\n{words(90)}\n\n## End one\n\n## End two\n"

    lesson_chunks = chunks(tmp_path, text)

    assert len(lesson_chunks) == 1
    assert lesson_chunks[0].section_title == "Deep"
    assert lesson_chunks[0].trail == ("T", "Bare", "Deep")
    assert [line for line in lesson_chunks[0].text.split("\n") if line.startswith("#")] == [
        "# T",
        "## Bare",
        "### Deep",
        "## End one",
        "## End two",
    ]


def test_headings_without_text_never_make_a_giant_chunk(tmp_path: Path) -> None:
    """A long run of bare headings is closed in time, each chunk named after a heading that it holds."""
    lesson_chunks = chunks(
        tmp_path, "".join(f"# Head {number}\n" for number in range(3000)) + "\nAnd at last some text.\n"
    )

    assert max(chunk.char_count for chunk in lesson_chunks) < 4500
    assert max(chunk.token_count for chunk in lesson_chunks) < 500
    assert all(f"# {chunk.section_title}" in chunk.text.split("\n") for chunk in lesson_chunks)
    assert [word for word in all_words(lesson_chunks) if word.isdecimal()] == [str(number) for number in range(3000)]


def test_headings_inside_a_list_never_make_a_giant_chunk(tmp_path: Path) -> None:
    """They open no section, so all of them are one section's."""
    lesson_chunks = chunks(tmp_path, "# T\n\n" + "".join(f"- # Head {number}\n" for number in range(3000)))

    assert max(chunk.char_count for chunk in lesson_chunks) < 8000
    assert [word for word in all_words(lesson_chunks) if word.isdecimal()] == [str(number) for number in range(3000)]


def test_a_heading_travels_with_the_largest_fence(tmp_path: Path) -> None:
    """However large what follows may be, the headings above it are not left behind."""
    code = "\n".join("x" * 79 for _ in range(99))

    [chunk] = chunks(tmp_path, f"# One\n\n## Two\n\n```\n{code}\n```\n")

    assert chunk.text.startswith("# One\n\n## Two\n\n```\nxxx")


MARKED = st.lists(
    st.one_of(
        st.sampled_from(["# H", "## H", "  ## H", "   ### H #", "H\n===", "  H\n  ---", "- # H", "> ## H"]),
        st.sampled_from(
            ["    code\n    more code", "  a\n  b\n   c", "\ta\n\tb", "words", "- a\n  b\n\n  c", "\x0c a"]
        ),
        st.sampled_from(["  ```\n  a\n  ```", "```\nnever closed", "<div>\n\nx\n\n</div>", "   - a\n     b\n   - c"]),
    ),
    min_size=2,
    max_size=12,
)


@settings(deadline=None)
@given(blocks=MARKED, rules=st.sampled_from([SMALL, ReadingRules()]))
@example(blocks=["    code\n    more code", "# H", "words", "## H", "words"], rules=ReadingRules())
def test_a_mark_is_where_its_heading_begins(blocks: list[str], rules: ReadingRules) -> None:
    """Whatever stands before it in the chunk, a mark points at the first character of its heading's line."""
    count = iter(range(1000))
    text = re.sub("H", lambda _: f"Head{next(count)}", "\n\n".join(blocks))
    lines = {line.strip() for line in text.split("\n")}
    with tempfile.TemporaryDirectory() as name:
        lesson_chunks = chunks(Path(name), text, rules=rules)

    for chunk in lesson_chunks:
        for mark in chunk.sections:
            line = chunk.text[mark.at :].split("\n", 1)[0]
            assert mark.at == 0 or chunk.text[mark.at - 1] == "\n"
            assert line.strip() in lines
            assert line.strip().strip("# ") == mark.title


def test_long_sections_are_cut_near_the_target(tmp_path: Path) -> None:
    """Paragraphs are kept, no chunk is above the target, none is a crumb, and all carry the section's title."""
    text = "# T\n\n" + "\n\n".join(words(40, f"p{number}x") for number in range(30))

    lesson_chunks = chunks(tmp_path, text)

    assert all(250 <= chunk.token_count <= 400 for chunk in lesson_chunks)
    assert {chunk.section_title for chunk in lesson_chunks} == {"T"}
    assert all_words(lesson_chunks) == text.split()


def test_a_long_paragraph_is_cut_between_sentences(tmp_path: Path) -> None:
    """Never inside one, while every sentence fits."""
    sentences = [words(20, f"s{number}x").capitalize() for number in range(60)]

    lesson_chunks = chunks(tmp_path, "# T\n\n" + " ".join(sentences))

    assert len(lesson_chunks) > 3
    assert all(chunk.text.endswith(".") for chunk in lesson_chunks)
    assert all(chunk.token_count <= 400 for chunk in lesson_chunks)


def test_a_short_last_sentence_is_kept(tmp_path: Path) -> None:
    """Wherever the cut before it falls, and with the line it stands on."""
    for count, target in product((8, 9, 13), range(32, 64, 2)):
        text = "# T\n\n" + "\n".join(words(12, f"s{number}x") for number in range(count)) + " The end is here."

        lesson_chunks = chunks(tmp_path, text, rules=replace(SMALL, target_tokens=target))

        assert all_words(lesson_chunks) == text.split()
        assert lesson_chunks[-1].line_end == count + 2
        assert [chunk.line_start for chunk in lesson_chunks[1:]] == [chunk.line_end + 1 for chunk in lesson_chunks[:-1]]


def test_abbreviations_do_not_end_sentences(tmp_path: Path) -> None:
    """e.g. and Fig. 3 stay with what they belong to."""
    sentence = "Some robots, e.g. Spot or the one in Fig. 3 by Dr. Smith, walk on four legs today."

    lesson_chunks = chunks(tmp_path, "# T\n\n" + " ".join([sentence] * 60))

    assert all(chunk.text.endswith("today.") for chunk in lesson_chunks)


def test_a_sentence_is_cut_at_a_word_only_where_it_is_too_large(tmp_path: Path) -> None:
    """And then no word is lost or split."""
    text = "# T\n\n" + words(2000).rstrip(".")

    lesson_chunks = chunks(tmp_path, text)

    assert all(chunk.token_count <= 800 for chunk in lesson_chunks)
    assert all_words(lesson_chunks) == text.split()


def test_a_fence_stays_whole_up_to_twice_the_target(tmp_path: Path) -> None:
    """600 words of code are one chunk, with the line that leads to them."""
    code = "```python\n" + "\n".join(f"a{number} = b{number} + c{number}" for number in range(120)) + "\n```"

    lesson_chunks = chunks(tmp_path, f"# T\n\nLike this:\n\n{code}\n\nAfter it more words follow.\n")

    assert tokens(code) > 700
    assert sum("```python" in chunk.text for chunk in lesson_chunks) == 1
    assert any(code in chunk.text for chunk in lesson_chunks)


def test_a_larger_fence_is_cut_between_lines_and_fenced_again(tmp_path: Path) -> None:
    """Each part is code in the author's language; what we added is in no line range."""
    lines = [f"value{number} = compute(value{number - 1}, {number})" for number in range(900)]

    lesson_chunks = chunks(tmp_path, '# T\n\n```python title="x.py"\n' + "\n".join(lines) + "\n```\n")

    assert len(lesson_chunks) > 3
    assert all(chunk.text.count('```python title="x.py"') == 1 for chunk in lesson_chunks)
    assert all(open_fence(chunk.text) is None and chunk.text.endswith("```") for chunk in lesson_chunks)
    code_lines = [
        line
        for chunk in lesson_chunks
        for line in chunk.text.split("\n")
        if not line.startswith(("```", "# T")) and line
    ]
    assert code_lines == lines
    assert lesson_chunks[0].line_start == 1
    assert [chunk.line_start for chunk in lesson_chunks[1:]] == [chunk.line_end + 1 for chunk in lesson_chunks[:-1]]
    assert lesson_chunks[-1].line_end == len(lines) + 4


def test_a_large_table_repeats_its_header(tmp_path: Path) -> None:
    """Rows are kept whole, and every part can be read by itself."""
    rows = [f"| row {number} | {words(12, 'c')} |" for number in range(200)]

    lesson_chunks = chunks(tmp_path, "# T\n\n| name | value |\n|---|---|\n" + "\n".join(rows) + "\n")

    assert len(lesson_chunks) > 3
    assert all("| name | value |\n|---|---|\n" in chunk.text for chunk in lesson_chunks)
    assert [line for chunk in lesson_chunks for line in chunk.text.split("\n") if line.startswith("| row")] == rows


def test_large_maths_stays_maths(tmp_path: Path) -> None:
    """Each part has its own dollar signs."""
    body = "\n".join(f"x_{{{number}}} &= y_{{{number}}} + z_{{{number}}} \\\\" for number in range(400))

    lesson_chunks = chunks(tmp_path, f"# T\n\n$$\n{body}\n$$\n")

    assert len(lesson_chunks) > 2
    assert all(chunk.text.count("$$") == 2 for chunk in lesson_chunks)


def test_maths_and_small_tables_are_verbatim(tmp_path: Path) -> None:
    """Formulas, mermaid and tables are the author's, character for character."""
    blocks = [
        "$$\n\\frac{a}{b} < c_{\\text{max}}\n= 1\n$$",
        "```mermaid\ngraph TD\n  A-->B\n```",
        "| a | b |\n|--|--|\n| 1 | `<b>` |",
    ]

    (chunk,) = chunks(tmp_path, "# T\n\n" + "\n\n".join(blocks))

    assert all(block in chunk.text for block in blocks)


@pytest.mark.parametrize("alphabet", ["漢字仮名交じり文", "ខ្មែរ", "ไทย"])
def test_scripts_without_spaces_make_no_giant_chunks(tmp_path: Path, alphabet: str) -> None:
    """A word count would call a page one word."""
    text = "# 題\n\n" + "".join(alphabet[number % len(alphabet)] for number in range(20_000))

    lesson_chunks = chunks(tmp_path, text)

    assert all(chunk.char_count <= 4000 for chunk in lesson_chunks)
    assert "".join(chunk.text for chunk in lesson_chunks).replace("# 題\n\n", "") == text.replace("# 題\n\n", "")


def test_urdu_sentences_are_cut_at_their_own_full_stop(tmp_path: Path) -> None:
    """Text from right to left is cut between sentences too."""
    sentence = "روبوٹ کو دنیا میں حرکت کرنے کے لیے سینسر اور موٹر دونوں کی ضرورت ہوتی ہے۔"

    lesson_chunks = chunks(tmp_path, "# سبق\n\n" + " ".join([sentence] * 80))

    assert len(lesson_chunks) > 2
    assert all(chunk.text.endswith("۔") for chunk in lesson_chunks)


@pytest.mark.parametrize("junk", ["x" * 100_000, "x" * 9000 + " y " + "z" * 9000])
def test_a_word_longer_than_a_chunk_is_cut(tmp_path: Path, junk: str) -> None:
    """In prose and in code alike, nothing grows without bound."""
    for text in (f"# T\n\n{junk}\n", f"# T\n\n```\n{junk}\n```\n"):
        lesson_chunks = chunks(tmp_path, text)

        assert all(chunk.char_count <= 8200 for chunk in lesson_chunks)
        assert "".join(chunk.text for chunk in lesson_chunks).count("x") == junk.count("x")


def test_an_endless_heading_is_cut_in_trails_and_left_out_of_urls(tmp_path: Path) -> None:
    """Its words are in the text once, not in every chunk's trail and address."""
    lesson_chunks = chunks(tmp_path, f"## {words(800)}\n\n{words(1000)}\n")

    assert all(len(chunk.url) < 100 for chunk in lesson_chunks)
    assert all(len(" ".join(chunk.trail)) < 500 for chunk in lesson_chunks)
    assert all_words(lesson_chunks).count("word700") == 2


@pytest.mark.parametrize(
    ("text", "count"),
    [("# T", 0), ("ok", 0), ("# Title 123", 1), ("123456789", 0), ("1234567890", 1), ("# A\n\nb\n\n## C\n\nd", 1)],
)
def test_lessons_shorter_than_a_chunk_are_reported(tmp_path: Path, text: str, count: int) -> None:
    """Ten characters are a chunk; less is an error line, never a chunk and never silence."""
    result = read(tmp_path, text)

    assert len(result.chunks) == count
    assert [problem.severity for problem in result.problems] == (["error"] if not count else [])


def test_a_lesson_of_tags_alone_is_reported(tmp_path: Path) -> None:
    """What leaves nothing to read is an error that says so."""
    result = read(tmp_path, "import A from 'a';\n\n<A/>\n", file="a.mdx")

    assert result.chunks == ()
    assert "fewer than 10 characters" in result.problems[0].message


def test_a_chunk_that_begins_inside_a_list_is_brought_to_the_margin(tmp_path: Path) -> None:
    """Otherwise its fence would be closed by a line that Markdown no longer takes for one."""
    code = "\n".join(f"    line{number} of the code" for number in range(40))
    text = f"# T\n\n1. {words(40)}\n\n    ```py\n{code}\n    ```\n\n2. {words(40)}\n"

    lesson_chunks = chunks(tmp_path, text, rules=SMALL)

    assert all(open_fence(chunk.text) is None for chunk in lesson_chunks)
    assert all(not re.search(r"^ {4,}```", chunk.text.split("\n")[0]) for chunk in lesson_chunks)


def test_an_unclosed_fence_is_closed(tmp_path: Path) -> None:
    """Also one that ends with its quote or list, and one at the end of the file."""
    for text in (
        "# T\n\n```py\ncode at the end",
        "> ```py\n> code in a quote\n\nAfter the quote.",
        "- ```py\n  code\n\nAfter.",
    ):
        lesson_chunks = chunks(tmp_path, text)

        assert all(open_fence(chunk.text) is None for chunk in lesson_chunks)


def test_indented_code_with_fences_in_it_stays_balanced(tmp_path: Path) -> None:
    """Brought to the margin, a line that was code would open a fence; the chunk closes it."""
    code = "\n".join(["    ```python", *(f"    line {number} of the example" for number in range(60)), "    ```"])

    lesson_chunks = chunks(tmp_path, f"# T\n\nSome text.\n\n{code}\n", rules=SMALL)

    assert len(lesson_chunks) > 2
    assert all(open_fence(chunk.text) is None for chunk in lesson_chunks)


@pytest.mark.parametrize(
    ("text", "closing"),
    [
        ("no fence", None),
        ("```\na\n```", None),
        ("```\na", "```"),
        ("````\n```\na", "````"),
        ("~~~\n```\n~~~", None),
        ("> ```\n> a", "> ```"),
        ("```py\n```js\n```", None),
        ("inline ``` marks", None),
        ("```a`b\ntext", None),
    ],
)
def test_balance(text: str, closing: str | None) -> None:
    """A text that leaves a fence open gets the line that closes it."""
    assert open_fence(text) == closing
    assert open_fence(balanced(text)) is None


def test_crlf_and_bom_give_the_same_chunks(tmp_path: Path) -> None:
    """How a file ends its lines changes neither text nor line numbers."""
    text = f"# T\n\n{words(50)}\n\n## A\n\n```py\nx = 1\n```\n"
    plain = chunks(tmp_path / "lf", text)

    for name, changed_text in (
        ("crlf", text.replace("\n", "\r\n")),
        ("cr", text.replace("\n", "\r")),
        ("bom", "\ufeff" + text),
    ):
        changed_chunks = chunks(tmp_path / name, changed_text)

        assert [(c.text, c.line_start, c.line_end) for c in changed_chunks] == [
            (c.text, c.line_start, c.line_end) for c in plain
        ]


def test_counts_are_true(tmp_path: Path) -> None:
    """Words by split, tokens by the design's estimate, characters by length."""
    for chunk in chunks(tmp_path, f"# T\n\n{words(300)}\n\n## B\n\n{words(500)}\n"):
        assert chunk.word_count == len(chunk.text.split())
        assert chunk.token_count == round(chunk.word_count * 1.3)
        assert chunk.char_count == len(chunk.text)


def test_visible_words_are_all_there(tmp_path: Path) -> None:
    """Nested lists, quotes, tables, tabs, admonitions, footnotes and definitions lose no word."""
    text = (Path(__file__).parent / "everything.mdx").read_text()

    lesson_chunks = chunks(tmp_path, text, file="a.mdx", rules=SMALL)
    word_counts = Counter(re.findall(r"word\d+", " ".join(chunk.text for chunk in lesson_chunks)))

    assert set(word_counts) == {f"word{number}" for number in range(1, 41)}
    assert not [chunk for chunk in lesson_chunks if "gone" in chunk.text]
    assert all(open_fence(chunk.text) is None for chunk in lesson_chunks)
