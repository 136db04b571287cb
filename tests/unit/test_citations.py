"""What a reader is shown of a cited passage, and where its link leads."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.citations import PASSAGE_LENGTH, citation, excerpt
from lectern.domain.chunks import IncludedLines, SectionMark
from lectern.text.markers import renumbered, without_markers
from tests.making import chunk, hit, numbers_in


@given(st.text(alphabet="abc .\n", min_size=1, max_size=2000), st.integers(0, 1999), st.integers(0, 300))
def test_an_excerpt_is_short_and_verbatim(text: str, start: int, length: int) -> None:
    """A shown passage has at most 500 characters, and all of them stand in the chunk."""
    shown_text = excerpt(text, text[start : start + length])

    assert len(shown_text) <= PASSAGE_LENGTH
    assert shown_text.strip("…") in text


def test_an_excerpt_holds_the_cited_sentence() -> None:
    """However long the chunk, the sentence that was cited is in what the reader sees."""
    sentence = "The torque limit is 40 newton metres."
    text = "Filler words come first. " * 60 + sentence + " More words follow. " * 60

    assert sentence in excerpt(text, sentence)


def test_code_and_links_are_no_citations() -> None:
    """`ranges[0]` in code and the text of a link cite nothing."""
    assert numbers_in("Take `ranges[0]` [2], see [1](x.md).") == [2]
    assert without_markers("Take `ranges[0]` [2].") == "Take `ranges[0]`."


def test_an_index_in_plain_text_is_no_citation() -> None:
    """In a finished text markers are numbered by first mention, so that a word's index that breaks the order is
    text."""
    text = "It is in array[0] [1], in argv[7], and in two places[2]."

    assert numbers_in(text) == [1, 2]
    assert without_markers("It is in array[0] [1].") == "It is in array[0]."
    assert renumbered(text, {1: 2, 2: 1}.get) == "It is in array[0] [2], in argv[7], and in two places[1]."


def test_every_form_of_marker_is_taken_out() -> None:
    """As models write them."""
    assert without_markers("A【1】 b 【2†source】 c [Passage 1] d [Sources 1 and 2] e [3].") == "A b c d e."


def test_a_citation_opens_at_the_section_it_quotes() -> None:
    """In a chunk of several short sections the link is that of the quoted one, not of the first."""
    text = "## Motor\n\nIt turns the wheel.\n\n## Gear\n\nIt slows the motor."
    marks = (
        SectionMark(at=0, title="Motor", url="/parts#motor"),
        SectionMark(at=text.index("## Gear"), title="Gear", url="/parts#gear"),
    )
    shared = hit(chunk(text, sections=marks, url="/parts#motor", line_start=11, line_end=17))

    first, second = citation(1, shared, "It turns the wheel."), citation(1, shared, "It slows the motor.")

    assert (first.section, first.url) == ("Motor", "/parts#motor")
    assert (second.section, second.url) == ("Gear", "/parts#gear")
    assert (first.line_start, second.line_start, second.line_end) == (13, 17, 17)
    assert second.fragment_url == "/parts#gear:~:text=It%20slows%20the%20motor."


def test_a_citation_names_the_file_that_the_quoted_lines_are_from() -> None:
    """An included listing is cited with its own file and lines, the text around it with those of the lesson."""
    text = "It calls this.\n\n```rust\nfn one() {}\nfn two() {}\n```\n\nIt returns later."
    begin, end = text.index("fn one"), text.index("\n```\n\nIt")
    part = IncludedLines(at=begin, end=end, file="../code/x.rs", line_start=40, line_end=41)
    page = hit(chunk(text, included=(part,), source_file="a.md", line_start=11, line_end=17))

    listing, prose = citation(1, page, "fn two() {}"), citation(1, page, "It returns later.")

    assert (listing.source_file, listing.line_start, listing.line_end) == ("../code/x.rs", 40, 41)
    assert (prose.source_file, prose.line_start, prose.line_end) == ("a.md", 11, 17)


def test_a_fragment_is_of_one_block_as_it_is_rendered() -> None:
    """First and last words of the paragraph, list item or row that was quoted; markup is not part of it."""
    text = (
        "A first paragraph.\n\n- one item\n- the *second* item has a [link](x.md) and is long enough to be cut - here\n"
    )
    quoted = citation(1, hit(chunk(text, url="/p")), "the *second* item has a")

    assert quoted.fragment_url == "/p#:~:text=the%20second%20item%20has,be%20cut%20%2D%20here"
    assert re.search(r"[,&]text=", quoted.fragment_url) is None


def test_a_fragment_of_a_row_is_one_cell_and_a_listing_has_none() -> None:
    """No browser finds words across cells, with or without bars around them, nor a listing, wherever it stands."""
    text = "| Part | Mass |\n|---|---|\n| a finger | 80 g |\n\nArm | Reach\n---|---\nthe left | 2 m\n\n"
    text += "> ```\n> grip now\n> ```\n"
    fragments = [citation(1, hit(chunk(text, url="/p")), words).fragment_url for words in ("80 g", "2 m", "grip now")]

    assert fragments == ["/p#:~:text=a%20finger", "/p#:~:text=the%20left", "/p"]


def test_a_fragment_leaves_out_the_rim_of_a_box() -> None:
    """No page shows the line that opens a warning, so no browser would find it."""
    text = "Before.\n\n:::warning[Careful]\nThe pump is loud.\n:::\n\n!!! note\nIt is heavy too.\n"
    fragments = [
        citation(1, hit(chunk(text, url="/p")), words).fragment_url for words in ("The pump is", "It is heavy")
    ]

    assert fragments == ["/p#:~:text=The%20pump%20is%20loud.", "/p#:~:text=It%20is%20heavy%20too."]
