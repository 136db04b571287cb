"""Heading anchors, by each generator's own rules."""

from __future__ import annotations

import pytest

from lectern.domain.books import Site
from lectern.reading.headings import anchors, atx, github_slug, heading_text, title_heading


def of(site: Site, *headings: str) -> list[str]:
    """Anchors of second-level headings."""
    return anchors(site, [(2, heading) for heading in headings])


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # github-slugger's own fixtures
        ("bravoCharlieDelta", "bravocharliedelta"),
        ("__proto__", "__proto__"),
        ("heading with a - dash", "heading-with-a---dash"),
        ("heading with an _ underscore", "heading-with-an-_-underscore"),
        ("heading with a period.txt", "heading-with-a-periodtxt"),
        (
            "exchange.bind_headers(exchange, routing [, bindCallback])",
            "exchangebind_headersexchange-routing--bindcallback",
        ),
        ("apostrophe’s should be trimmed", "apostrophes-should-be-trimmed"),
        ("I ♥ unicode", "i--unicode"),
        ("en–dash", "endash"),
        ("😄 unicode emoji", "-unicode-emoji"),
        ("😄_😄 unicode emoji", "_-unicode-emoji"),
        (":ok_hand: Single", "ok_hand-single"),
        ("Профили пользователей", "профили-пользователей"),
        ("Привет non-latin 你好", "привет-non-latin-你好"),
        ("a⁀ ﹍b", "a⁀-﹍b"),
    ],
)
def test_github_slugs(text: str, expected: str) -> None:
    """Letters, marks, digits, connectors and hyphens of any script stay."""
    assert github_slug(text) == expected


@pytest.mark.parametrize("site", ["docusaurus", "plain"])
def test_github_repeats(site: Site) -> None:
    """Repeats are counted past the anchors that headings already have."""
    assert of(site, "echo", "echo", "echo 1", "echo-1", "echo") == ["echo", "echo-1", "echo-1-1", "echo-1-2", "echo-2"]


@pytest.mark.parametrize(
    ("heading", "docusaurus", "mkdocs", "mdbook"),
    [
        ("Your First Node", "your-first-node", "your-first-node", "your-first-node"),
        ("Use `rclpy.spin()`", "use-rclpyspin", "use-rclpyspin", "use-rclpyspin"),
        ("**Bold** and *soft*", "bold-and-soft", "bold-and-soft", "bold-and-soft"),
        ("See [the docs](http://x.y/z)", "see-the-docs", "see-the-docs", "see-the-docs"),
        ("A & B", "a--b", "a-b", "a--b"),
        ("C++ / C#", "c--c", "c-c", "c--c"),
        ("What's new?", "whats-new", "whats-new", "whats-new"),
        ("Step 1: Install", "step-1-install", "step-1-install", "step-1-install"),
        ("🚀 Launch", "-launch", "launch", "-launch"),
        ("Über uns", "über-uns", "uber-uns", "über-uns"),
        ("日本語 title", "日本語-title", "title", "日本語-title"),
        ("snake_case_name", "snake_case_name", "snake_case_name", "snake_case_name"),
        ("`<Tabs>` component", "tabs-component", "tabs-component", "tabs-component"),
        ("Explicit {#my-id}", "my-id", "my-id", "my-id"),
        ("Explicit {: #my-id .cls }", "my-id", "my-id", "my-id"),
        ("Explicit { #my-id }", "my-id", "my-id", "my-id"),
        ("A \\* B", "a--b", "a-b", "a--b"),
    ],
)
def test_one_heading_on_three_sites(heading: str, docusaurus: str, mkdocs: str, mdbook: str) -> None:
    """Code, emphasis, links, punctuation, emoji, other scripts and explicit ids."""
    assert (of("docusaurus", heading), of("mkdocs", heading), of("mdbook", heading)) == (
        [docusaurus],
        [mkdocs],
        [mdbook],
    )


def test_mkdocs_repeats_and_headings_without_ascii() -> None:
    """Repeats get _1, _2; a heading that leaves nothing is numbered like one; explicit ids are taken first."""
    assert of("mkdocs", "Setup", "Setup", "Setup", "日本", "日本") == ["setup", "setup_1", "setup_2", "_1", "_2"]
    assert of("mkdocs", "Setup", "Other {#setup}") == ["setup_1", "setup"]


def test_mdbook_repeats() -> None:
    """Repeats get -1, -2, past what exists; an explicit id is not counted."""
    assert of("mdbook", "A", "A", "A-1", "A") == ["a", "a-1", "a-1-1", "a-2"]
    assert of("mdbook", "B {#a}", "A") == ["a", "a"]


def test_docusaurus_titles_have_no_anchor_but_count() -> None:
    """The page's first-level heading is the top of the page, and a second one of its name is numbered."""
    assert anchors("docusaurus", [(1, "Setup"), (2, "Setup"), (2, "More {#setup}"), (2, "setup")]) == [
        "",
        "setup-1",
        "setup",
        "setup-2",
    ]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Plain", "Plain"),
        ("**Bold** `code` [link](x)", "Bold code link"),
        ("With id {#x}", "With id"),
        ("With comment id {/* #x */}", "With comment id"),
        ("A <Badge text='new'/> tag", "A tag"),
        ("![logo](x.png) Intro", "logo Intro"),
        ("Entities &amp; escapes \\#", "Entities & escapes #"),
        ("Set {1, 2}", "Set {1, 2}"),
    ],
)
def test_what_a_heading_says(heading: str, expected: str) -> None:
    """Its words as a reader sees them."""
    assert heading_text(heading) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("# A", "A"),
        ("   ### A ##", "A"),
        ("## A #b", "A #b"),
        ("#", ""),
        ("## ##", ""),
        ("#A", None),
        ("####### A", None),
        ("    # A", None),
        ("#\tA", "A"),
        ("# A#", "A#"),
    ],
)
def test_atx_headings(line: str, expected: str | None) -> None:
    """As CommonMark has them."""
    assert atx(line) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# One\n\n# Two", "One"),
        ("text\n\n### Deep first\n\n# Later", None),
        ("```\n# code\n```\n# Real", "Real"),
        ("~~~\n# code\n```\n~~~\n# Real", "Real"),
        ("<!-- # no -->\n# Yes", "Yes"),
        ("<!--\n# no\n-->\n# Yes", "Yes"),
        ("Set\next\n===\n", "Set ext"),
        ("Set\next\n---\n", None),
        ("- item\n---\n# Yes", "Yes"),
        ("#\n\n# Yes", "Yes"),
        ('<h1 align="center">The <b>tool</b></h1>\n\n## Install', "The tool"),
        ("# Signs &amp; <i>tags</i> {#signs}", "Signs & tags"),
        ("# Tasks [[tasks]]", "Tasks"),
        ("no heading", None),
    ],
)
def test_the_heading_that_is_the_title(body: str, expected: str | None) -> None:
    """The first one, outside code and comments, if it is of the first level. A lower one is the title of a section."""
    assert title_heading(body) == expected


def test_a_title_with_links_to_notes() -> None:
    """In a vault, brackets at the end of a title are a link, not an anchor."""
    assert title_heading("# About [[notes]]", wiki=True) == "About notes"


def test_a_count_too_long_to_be_a_number_is_part_of_the_name() -> None:
    """Python refuses to read more than 4,300 digits; such a heading has an anchor all the same."""
    endless = "x_" + "⑳" * 2500

    first, second = of("mkdocs", endless, endless)

    assert first == "x_" + "20" * 2500
    assert second == f"{first}_1"
