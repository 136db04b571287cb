"""Citations: minted by us, checked by us."""

import re

from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.citations import PASSAGE_LENGTH, cite, excerpt
from lectern.domain.chunks import SectionMark
from lectern.domain.evidence import Dossier
from tests.making import chunk, hit

DOSSIER = Dossier(
    question="q", hits=tuple(hit(chunk(f"Passage {n} says a thing about topic {n}.")) for n in range(1, 5))
)


def test_markers_are_renumbered_by_first_mention() -> None:
    """In a finished reply `[n]` is the n-th source."""
    cited = cite("First [3]. Second [1]. Third [3].", DOSSIER)

    assert cited.text == "First [1]. Second [2]. Third [1]."
    assert [citation.hit.chunk.text[:9] for citation in cited.citations] == ["Passage 3", "Passage 1"]
    assert [citation.number for citation in cited.citations] == [1, 2]


def test_a_marker_we_never_issued_is_removed_and_counted() -> None:
    """An invented number leaves no trace in the text, and the reply says how many there were."""
    cited = cite("True [2]. Invented [9], [0] and [77].", DOSSIER)

    assert cited.text == "True [1]. Invented, and."
    assert cited.invented == 3
    assert len(cited.citations) == 1


def test_several_numbers_in_one_marker_are_taken_apart() -> None:
    """`[1, 2]` cites two passages."""
    assert cite("Both say so [1, 2].", DOSSIER).text == "Both say so [1][2]."


@given(st.text(alphabet="ab. []0123456789,\n", max_size=80))
def test_every_marker_left_has_a_source(draft: str) -> None:
    """Whatever a model writes, what remains cites only passages of this dossier."""
    cited = cite(draft, DOSSIER)

    numbers = {int(number) for number in re.findall(r"\[(\d{1,4})\]", cited.text)}
    assert numbers <= {citation.number for citation in cited.citations}
    assert all(citation.hit in DOSSIER.hits for citation in cited.citations)


@given(st.text(alphabet="abc .\n", min_size=1, max_size=2000), st.integers(0, 1999), st.integers(0, 300))
def test_an_excerpt_is_short_and_verbatim(text: str, start: int, length: int) -> None:
    """A shown passage has at most 500 characters, and all of them stand in the chunk."""
    shown = excerpt(text, text[start : start + length])

    assert len(shown) <= PASSAGE_LENGTH
    assert shown.strip("…") in text


def test_an_excerpt_holds_the_cited_sentence() -> None:
    """However long the chunk, the sentence that was cited is in what the reader sees."""
    text = f"{'before ' * 200}The node sleeps for five seconds. {'after ' * 200}"

    assert "The node sleeps for five seconds." in excerpt(text, "The node sleeps for five seconds.")


def test_numbers_in_code_and_links_are_no_citations() -> None:
    """An index in code and a link's text stay as they are, and cite nothing."""
    draft = "Read `msg.ranges[0]` and `msg.ranges[2]`, see [2](https://example.org) [1]."

    cited = cite(draft, DOSSIER)

    assert cited.text == draft
    assert (len(cited.citations), cited.invented) == (1, 0)


def test_an_excerpt_finds_a_sentence_over_two_lines() -> None:
    """A sentence that the source breaks over lines is in what the reader sees."""
    text = f"{'before ' * 200}The node sleeps\nfor five seconds. {'after ' * 200}"

    assert "The node sleeps\nfor five seconds." in excerpt(text, "The node sleeps for five seconds.")


def test_a_citation_opens_at_the_section_it_quotes() -> None:
    """In a chunk of several short sections the link is that of the quoted one, not of the first."""
    text = "## Motor\n\nIt turns the wheel.\n\n## Gear\n\nIt slows the motor."
    marks = (
        SectionMark(at=0, title="Motor", url="/parts#motor"),
        SectionMark(at=text.index("## Gear"), title="Gear", url="/parts#gear"),
    )
    shared = Dossier(question="q", hits=(hit(chunk(text, sections=marks, url="/parts#motor")),))

    [first] = cite("It turns the wheel. [1]", shared).citations
    [second] = cite("It slows the motor. [1]", shared).citations

    assert (first.section, first.url) == ("Motor", "/parts#motor")
    assert (second.section, second.url) == ("Gear", "/parts#gear")
