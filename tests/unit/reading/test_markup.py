"""What is taken out of a text, what stays, and that every line keeps its number."""

from __future__ import annotations

import pytest

from lectern.reading.blocks import read_body


def visible_text(text: str, *, mdx: bool = True) -> str:
    """The lines that a reader sees, without the blank ones."""
    body = read_body(text, mdx=mdx)
    assert len(body.lines) == len(text.split("\n"))
    return "\n".join(line for line in body.lines if line.strip())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import Tabs from '@theme/Tabs';\n\ntext", "text"),
        ("import A from 'a'\nimport {b, c} from \"d\";\n\ntext", "text"),
        ("import {\n  A,\n  B,\n} from 'x';\n\ntext", "text"),
        ("import './style.css';\n\ntext", "text"),
        ("import * as X from 'x'\n\ntext", "text"),
        ("export const a = 1;\n\ntext", "text"),
        ("export const a = {\n  b: [1, 2],\n\n  c: 'x',\n};\n\ntext", "text"),
        ("export default function X() {\n  return <b>hi</b>;\n}\n\ntext", "text"),
        ("export {a};\n\ntext", "text"),
        ("import numpy as np and go on\n\ntext", "import numpy as np and go on\ntext"),
        ("import data from the sensor.\n\ntext", "import data from the sensor.\ntext"),
        ("export your results as CSV.\n\ntext", "export your results as CSV.\ntext"),
        ("first line\nimport A from 'a'", "first line\nimport A from 'a'"),
        ("```js\nimport A from 'a'\n\nexport const b = 1\n```", "```js\nimport A from 'a'\nexport const b = 1\n```"),
    ],
)
def test_imports_and_exports_go(text: str, expected: str) -> None:
    """Statements at the beginning of a block; prose that begins with the word, and code, stay."""
    assert visible_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<div>inner</div>", "inner"),
        ('<Tabs>\n<TabItem value="a">\n\ntext\n\n</TabItem>\n</Tabs>', "text"),
        ("a<br/>b", "a b"),
        ("H<sub>2</sub>O", "H2O"),
        ('<img src="a>b" alt="x" />text', "text"),
        ("<a\n  href='x'\n>link</a>", "link"),
        ("<Foo bar={{a: '}'}} baz={`${x} >`}>in</Foo>", "in"),
        ("<>frag</>", "frag"),
        ("<Foo.Bar>x</Foo.Bar>", "x"),
        ("<details>\n<summary>More</summary>\n\nhidden\n\n</details>", "More\nhidden"),
        ("before <!-- a comment --> after", "before  after"),
        ("<!--\nmany\nlines\n-->\ntext", "text"),
        ("{/* mdx */}text", "text"),
        ("{/*\nmany\n*/}\ntext", "text"),
        ("<script>var x = 1;</script>text", "text"),
        ("<style>\n.a { b: c }\n</style>\ntext", "text"),
        ("<!DOCTYPE html>text", "text"),
    ],
)
def test_tags_and_comments_go_and_their_words_stay(text: str, expected: str) -> None:
    """HTML, JSX with any attributes, fragments, comments of both kinds."""
    assert visible_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a < b and c > d",
        "if x <y then",
        "ros2 topic echo <topic>",
        "vector<int> and List<String>",
        "<https://example.org>",
        "<me@example.org>",
        "`<Tabs>` in code",
        "`` <b>`x`</b> `` in code",
        "1 <2",
        "<-- arrow -->",
        "an open <!-- comment that never ends",
        "an open {/* comment that never ends",
        'a <Foo bar="never closed',
        "x <Foo {never closed",
        "escaped \\<b>",
        "{expression} stays",
        "{{#include ../listing.rs}}",
        "$a<b$ and $c>d$",
        "A [ref]: https://example.org 'title'",
        "[ref]: two words",
        "[^1]: https://example.org",
        "::: and more",
        ":::text.of.something",
        "!!! this is no box",
        '== "x" ===',
    ],
)
def test_what_only_looks_like_markup_stays(text: str) -> None:
    """No word is lost to a comparison, a placeholder, an address, a code span or something left open."""
    assert visible_text(text) == text


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_code_is_left_alone(fence: str) -> None:
    """Inside a fence tags, comments, imports and headings are code."""
    text = f"{fence}jsx\nimport A from 'a'\n<Tabs>\n<!-- x -->\n{{/* y */}}\n# not a heading\n{fence}"
    body = read_body(text, mdx=True)

    assert "\n".join(body.lines) == text
    assert [block.kind for block in body.blocks] == ["fence"]


def test_indented_code_is_code_in_markdown_and_text_in_mdx() -> None:
    """MDX has no indented code; everywhere else four spaces keep their tags and are no heading."""
    text = "para\n\n    <div># x</div>\n    # comment\n\npara"

    assert "<div>" in visible_text(text, mdx=False)
    assert [block.kind for block in read_body(text, mdx=False).blocks] == ["text", "code", "text"]
    assert "<div>" not in visible_text(text, mdx=True)


def test_a_commented_out_fence_does_not_turn_text_into_code() -> None:
    """A comment that holds one fence mark would otherwise make everything after it code."""
    text = "a\n\n<!--\n```\n-->\n\n<b>b</b>\n\n# Heading\n\n```\ncode\n```\n\nend"
    body = read_body(text, mdx=False)

    assert [block.kind for block in body.blocks] == ["text", "text", "heading", "fence", "text"]
    assert "<b>" not in "\n".join(body.lines)


def test_words_that_a_component_shows_stay() -> None:
    """A quiz's questions and a tab's label are read by readers; names, classes and links are not."""
    text = """<Quiz
  id="quiz one"
  className="wide box"
  title="Chapter quiz"
  questions={[
    {
      question: "What spins?",
      options: ["Node", "A wheel"],
      correct: 1,
      explanation: `It's > all`,
    },
  ]}
  onDone={() => alert("not shown here")}
/>

<TabItem value="python code" label="Python">

# Heading

</TabItem>"""
    body = read_body(text, mdx=True)

    assert visible_text(text).split() == "Chapter quiz What spins? Node A wheel It's > all Python # Heading".split()
    assert body.lines[6].strip() == "What spins?"
    assert [block.title for block in body.blocks if block.kind == "heading"] == ["Heading"]


@pytest.mark.parametrize(
    ("tag", "shown"),
    [('<Menu path="Settings > System > Clock" />', "Settings > System > Clock"), ('<Icon path="img/clock" />', "")],
)
def test_a_path_of_words_is_text_and_a_path_of_a_file_is_not(tag: str, shown: str) -> None:
    """A component that shows where to click has the words in its `path`; others have the name of a file there."""
    assert visible_text(f"Go to {tag} and save.").split() == f"Go to {shown} and save.".split()


def test_a_heading_in_a_components_text_is_no_heading() -> None:
    """A string that begins with a hash is not the beginning of a section."""
    body = read_body("<Card\n  text={`\n# not a heading, is it\n`}\n/>\n\n# Real", mdx=True)

    assert [block.title for block in body.blocks if block.kind == "heading"] == ["Real"]


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("# A\n\n## B", ["A", "B"]),
        ("A\n===\n\nB\n---", ["A", "B"]),
        ("```\n# x\n```\n# A", ["A"]),
        ("$$\n# x\n=\n$$\n\n# A", ["A"]),
        ("\\[\n# x\n\\]\n\n# A", ["A"]),
        ("<pre>\n# x\n</pre>\n\n# A", ["A"]),
        ("| a | b |\n|---|---|\n| # x | y |\n\n# A", ["A"]),
        (":::note\n\n## In\n\n:::\n\n# A", ["In", "A"]),
        ("# A {/* #id */}", ["A {/* #id */}"]),
        ("#notaheading\n\n# A", ["A"]),
        ("# A\n\n$$ never closed\n\n# B", ["A", "B"]),
    ],
)
def test_headings_are_where_a_reader_sees_them(text: str, titles: list[str]) -> None:
    """ATX and setext; never in code, maths, tables or preformatted text."""
    assert [block.title for block in read_body(text, mdx=True).blocks if block.level] == titles


def test_headings_in_lists_and_quotes_open_no_section() -> None:
    """They are counted for anchors, as the site counts them."""
    blocks = read_body("# A\n\n> # B\n\n- # C\n", mdx=False).blocks

    assert [(block.title, block.level) for block in blocks if block.kind == "heading"] == [("A", 1), ("B", 0), ("C", 0)]


def test_an_admonitions_content_is_not_code() -> None:
    """What `!!! note` indents is read as text, with its own fences and headings."""
    text = '!!! note "Title"\n\n    ```py\n    # code\n    ```\n\n    ## In\n\n    text\n\npara'

    assert [block.kind for block in read_body(text, mdx=False).blocks] == ["text", "fence", "heading", "text", "text"]


def test_every_line_with_words_is_in_one_block() -> None:
    """Link definitions and what lies too deep to be parsed included."""
    text = "[a]: b\n\n" + "> " * 40 + "deep\n\n- a\n  - b\n\n    c\n\n| x |\n|---|\n| y |\n\n***\n\nend"
    body = read_body(text, mdx=False)

    covered = [line for block in body.blocks for line in range(block.start, block.end)]

    assert len(covered) == len(set(covered))
    assert {line for line, words in enumerate(body.lines) if words.strip()} <= set(covered)
