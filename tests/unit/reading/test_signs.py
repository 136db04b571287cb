"""Signs for a page's looks are no text, and text that looks like them stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.reading.blocks import read_body
from tests.unit.reading.folders import chunks, words


def text_of(markdown: str, *, mdx: bool = False, wiki: bool = False) -> str:
    """A body as it is indexed, without blank lines."""
    return "\n".join(line for line in read_body(markdown, mdx=mdx, wiki=wiki).lines if line.strip())


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("A&nbsp;B &mdash; C&hellip;", "A\xa0B — C…"),
        ("Tom &amp; Jerry, 1 &lt; 2 &gt; 0", "Tom & Jerry, 1 < 2 > 0"),
        ("Write &lt;div class=x&gt; here", "Write `<div class=x>` here"),
        ("&#8217;s and &#x2014; and &zwnj;.", "’s and — and ."),
        ("| a &#124; b |", "| a \\| b |"),
        ("AT&T; R&D &unknown; & more", "AT&T; R&D &unknown; & more"),
        ("`&nbsp;` is code", "`&nbsp;` is code"),
        ("&amp;lt; stays", "&amp;lt; stays"),
    ],
)
def test_entities_become_their_characters(markdown: str, expected: str) -> None:
    """Except where the character would be markup, and in code."""
    assert text_of(markdown) == expected


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("A note.\n{: .note .wide }", "A note."),
        ("![A map](m.png){ width=300 loading=lazy }", "![A map](m.png)"),
        ('[Start](a.md){ .md-button target="_blank" }', "[Start](a.md)"),
        ("- **Bold**{ .red }", "- **Bold**"),
        ("::: {.callout-note}\nWords.\n:::", "Words."),
        (":::tip\nWords.\n:::", "Words."),
        (f"{':' * 60} callout\n\nWords.\n\n{':' * 60}", "Words."),
        (":::warning Mind it\nWords.\n:::", "**Mind it**\nWords."),
        (":::tip[A *title*]\n\nWords.\n\n:::", "**A *title***\nWords."),
        ("::::note[A <b>title</b>]{#x}\n:::info{.wide}\nWords.\n:::\n::::", "**A title**\nWords."),
        ("- > :::note\n  > Words.", "- >\n  > Words."),
        ("!!! note\n    Words.\n\n    - Item", "Words.\n- Item"),
        (
            '??? note inline end "A title"\n\n    ```py\n    if x:\n        y\n    ```',
            "**A title**\n```py\nif x:\n    y\n```",
        ),
        ("!!!note\n    Words.", "Words."),
        ("Term\n:   Meaning.\n\n    !!! note\n        More.", "Term\n:   Meaning.\nMore."),
        ("1. Item\n\n    > [!NOTE]\n    > Words.", "1. Item\n    > \n    > Words."),
        ('=== "Linux"\n\n    One.\n\n=== "Windows"\n\n    Two.', "**Linux**\nOne.\n**Windows**\nTwo."),
        ("```\n:::tip\n!!! note\n[a]: b\n```", "```\n:::tip\n!!! note\n[a]: b\n```"),
        ("See [a][x] and [Words][A].\n\n[a]: b.md", "See [a][x] and Words."),
        (
            "See [a],\n[c\nD][], [`g`] and [t](u).\n\n[c d]: <e f> 'T'\n[`g`]:\n  https://h.example/i",
            "See [a],\nc\nD, `g` and [t](u).",
        ),
        ("`[a]`, ![x][a], \\[a], [a]: and [a][^1]\n\n[a]: b", "`[a]`, ![x][a], \\[a], [a]: and a[^1]"),
        ("Words\n[a]: b.md", "Words\n[a]: b.md"),
        ("## Nodes {#nodes}", "## Nodes"),
        ("## Nodes [[nodes]]", "## Nodes"),
        ('See :material-star:{ .big style="color: #EE0F0F" } it.', "See  it."),
        ("at 10:30:{ .x } and :smile: and :simple words", "at 10:30: and :smile: and :simple words"),
        ("> [!tip] See <b>this</b> &amp; [that](x.md)\n> Words.", "> **See this & [that](x.md)**\n> Words."),
        ('The title is <code\nclass="x"># Summary</code>.', "The title is \n\\# Summary."),
        ("<code># Summary</code> is ignored.", "\\# Summary is ignored."),
        ("object&lt;string&gt; and &lt;x", "object`<string>` and \\<x"),
        ("{.lead}", ""),
        ("A set {a, b} and {.Name} and {x=1} stay.", "A set {a, b} and {.Name} and {x=1} stay."),
        ("```py\nd = {: .x}\n```", "```py\nd = {: .x}\n```"),
        ("## Nodes {/* #nodes */}", "## Nodes"),
        ("## Nodes { #nodes .wide }", "## Nodes"),
        ("## Are everywhere![[are-everywhere]]", "## Are everywhere!"),
        ("/// tip | Mind this\n\nWords.\n\n///", "**Mind this**\nWords."),
        ("//// tab | Python 3.10+\n/// note\nWords.\n///\n////", "**Python 3.10+**\nWords."),
        ("{#if fw === 'pt'}\nOne.\n{:else}\nTwo.\n{/if}", "One.\nTwo."),
        ("> [!NOTE]\n> Words.", "> \n> Words."),
        ("> [!tip]- A title\n> Words.", "> **A title**\n> Words."),
    ],
)
def test_looks_are_no_text(markdown: str, expected: str) -> None:
    """Attributes, anchors of headings, borders of boxes and kinds of callouts."""
    assert text_of(markdown) == expected


def test_wiki_links_in_the_title_of_a_callout() -> None:
    """They are links there too."""
    assert text_of("> [!tip] See [[Note|this]]\n> Words. ^id", wiki=True) == "> **See this**\n> Words. "


def test_strings_in_braces_are_text() -> None:
    """JSX writes spaces and signs so. In Markdown braces are braces."""
    markdown = "<p>\n  {'One '}two{' '}\n  {\"it's\\n\"}\n</p>\n\n{'a', 'b'} and {x}"

    assert text_of(markdown, mdx=True).split() == ["One", "two", "it's", "{'a',", "'b'}", "and", "{x}"]
    assert text_of("A set {'a'} stays.") == "A set {'a'} stays."


def test_texts_of_components_are_read_as_they_are_rendered() -> None:
    """The tags, entities and escapes in them are no text."""
    markdown = r"""<Quiz choices={[
  {text: "See <a href=\"https://x.example\">the page</a>.",
  explain: 'It\'s &lt; 5 <code>x</code>'}]} />"""

    assert text_of(markdown, mdx=True).split() == "See the page. It's < 5 x".split()


def test_the_number_and_the_file_of_a_listing_are_text() -> None:
    """The site shows both, with the name of the component."""
    markdown = '<Listing number="4-5" file-name="src/main.rs" caption="A `String` that moves">\n\nWords.\n\n</Listing>'

    assert text_of(markdown).split("\n")[0].split() == "Listing 4-5 src/main.rs A `String` that moves".split()
    assert text_of('<Listing file-name="Cargo.toml">\n\nWords.\n\n</Listing>').split() == ["Cargo.toml", "Words."]
    assert text_of('<Steps number="many" id="4-5">\n\nWords.\n\n</Steps>').split() == ["many", "Words."]


def test_class_names_styles_and_addresses_of_components_are_no_text() -> None:
    """Whatever the attribute is called: `classNames`, `titleStyle`, `imageUrl`."""
    markdown = """<Banner chapter={1}
  classNames="absolute z-10 right-0" titleClassName="big bold" boxStyle={{margin: '0 auto'}} imageUrl="a b.png"
  notebooks={[{label: "Google Colab", value: "https://x.org/a b"}, "https://x.org/c"]} title="Shown words" />"""

    assert text_of(markdown, mdx=True).split() == ["Google", "Colab", "Shown", "words"]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("See [[Some note]] and [[folder/Note|these words]].", "See Some note and these words."),
        ("See [[Note#A heading]] and [[#Below]].", "See Note > A heading and Below."),
        ("Words. %% a secret %% More.", "Words. More."),
        ("Words.\n%%\na secret\n%%\nMore.", "Words.\nMore."),
        ("A claim. ^claim-1", "A claim. "),
        ("[[Note]]^claim-1\n\n^claim-2\n\nx ^ y", "Note\nx ^ y"),
        ("[[open-in-colab]]\n\nWords.", "Words."),
        ("`[[code]]` and x[[1]] and [[ -f x ]] stay.", "`[[code]]` and x[[1]] and [[ -f x ]] stay."),
    ],
)
def test_notes_are_read_as_they_are_rendered(markdown: str, expected: str) -> None:
    """Links keep their words; comments and block ids are gone. On other sites these signs are text."""
    assert text_of(markdown, wiki=True).replace("  ", " ") == expected
    assert text_of("[[x]] 5 %% 3 ^up") == "[[x]] 5 %% 3 ^up"


def test_wrapped_lines_are_one_sentence(tmp_path: Path) -> None:
    """A long paragraph is cut between sentences, wherever its lines end."""
    sentence = words(30).replace(" word9 ", " word9\n").replace(" word19 ", " word19\n")
    parts = chunks(tmp_path, "# A\n\n" + "\n".join([sentence] * 40) + "\n")

    assert len(parts) > 2
    assert all(part.text.endswith("word29.") for part in parts)
