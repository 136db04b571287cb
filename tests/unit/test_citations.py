"""Citations: minted by us, checked by us."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.checking import UNVERIFIED, Checker
from lectern.answering.citations import PASSAGE_LENGTH, citation, excerpt
from lectern.answering.outgoing import Confidential
from lectern.domain.chunks import SectionMark
from lectern.domain.replies import Judgement, Verdict
from lectern.text.markers import numbers_in, without_markers
from tests.making import chunk, hit

PASSAGES = {n: hit(chunk(f"Passage {n} says a thing about topic {n}.")) for n in range(1, 5)}


class VerdictsByWord:
    """A judge that was told what to say of some sentences, and finds the others supported."""

    def __init__(self, **verdicts: Verdict) -> None:
        self._verdicts = verdicts
        self.asked: list[tuple[str, Sequence[str]]] = []

    async def judge(self, sentence: str, passages: Sequence[str]) -> Judgement:
        """What was told."""
        self.asked.append((sentence, passages))
        return Judgement(
            verdict=self._verdicts.get(sentence.split(maxsplit=1)[0].strip(".").lower(), "supported"), support=0.5
        )


async def checked(draft: str, judge: VerdictsByWord | None = None, size: int = 10_000) -> Checker:
    """A draft after checking, taken in pieces of this size; what was shown on the way is what stands at the end."""
    checker = Checker(judge=judge or VerdictsByWord(), passage=PASSAGES.get, confidential=Confidential([], []))
    streamed_text = ""
    for start in range(0, len(draft), size):
        streamed_text += await checker.feed(draft[start : start + size])
    streamed_text += await checker.finish()
    assert streamed_text.strip() == checker.text
    return checker


async def test_markers_are_renumbered_by_first_mention() -> None:
    """In a finished reply `[n]` is the n-th source."""
    checked_draft = await checked("First [3]. Second [1]. Third [3].")

    assert checked_draft.text == "First [1]. Second [2]. Third [1]."
    assert [citation.hit.chunk.text[:9] for citation in checked_draft.citations()] == ["Passage 3", "Passage 1"]
    assert [citation.number for citation in checked_draft.citations()] == [1, 2]


async def test_a_marker_we_never_issued_is_removed_and_counted() -> None:
    """An invented number leaves no trace; a sentence that had no other leaves with it."""
    checked_draft = await checked("True [2]. Half true [2][9]. Invented [9], [0] and [77].")

    assert checked_draft.text == "True [1]. Half true [1]."
    assert (checked_draft.removals.invented_citations, checked_draft.removals.uncited) == (4, 1)
    assert len(checked_draft.citations()) == 1


async def test_several_numbers_in_one_marker_are_taken_apart() -> None:
    """`[1, 2]` cites two passages, and the judge sees both."""
    judge = VerdictsByWord()
    assert (await checked("Both say so [1, 2].", judge)).text == "Both say so [1][2]."
    [(sentence, passages)] = judge.asked
    assert sentence == "Both say so."
    assert len(passages) == 2


async def test_contradicted_never_leaves_and_unverified_is_marked() -> None:
    """What sources deny is dropped and counted; what they do not bear out is marked."""
    checked_draft = await checked(
        "Fine [1]. Wrong [2]. Vague [3].", VerdictsByWord(wrong="contradicted", vague="unverified")
    )

    assert checked_draft.text == f"Fine [1]. Vague [2].{UNVERIFIED}"
    assert checked_draft.removals.contradicted == 1
    assert [statement.verdict for statement in checked_draft.statements] == ["supported", "unverified"]


async def test_unverified_waits_for_something_supported() -> None:
    """Nothing leaves while nothing is borne out; then it comes in order. Where nothing is, nothing was said."""
    judge = VerdictsByWord(vague="unverified")
    checker = Checker(judge=judge, passage=PASSAGES.get, confidential=Confidential([], []))
    assert await checker.feed("Vague [1]. And more") == ""
    assert (await checker.feed(" [2]. ")) + (await checker.finish()) == f"Vague [1].{UNVERIFIED} And more [2]."

    alone = await checked("Vague [1].", judge)
    assert (alone.text, alone.supported) == ("", False)


@given(st.text(alphabet="ab. []0123456789,\n`", max_size=80), st.integers(1, 9))
def test_every_marker_left_has_a_source(draft: str, size: int) -> None:
    """Whatever a model writes, in whatever pieces, what remains cites only passages that were handed out."""
    import asyncio

    whole, pieces = (asyncio.run(checked(draft, size=chunk_size)) for chunk_size in (10_000, size))

    assert whole.text == pieces.text
    assert set(numbers_in(whole.text)) <= {citation.number for citation in whole.citations()}
    assert all(citation.hit in PASSAGES.values() for citation in whole.citations())


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


async def test_a_listing_is_judged_without_its_fences() -> None:
    """What stands between the fences is the book's or is not; what no fence closes is not shown: nobody judged it."""
    judge = VerdictsByWord()
    await checked("Do this [3].\n\n```python\nx = 1\ny = 2\n```\n[3]\n", judge)
    broken = await checked("Do this [3].\n\n```python\nx = 1\ny = 3", judge)

    assert [sentence for sentence, _ in judge.asked if "x" in sentence] == ["x = 1\ny = 2"]
    assert broken.text == "Do this [1]."


async def test_the_books_own_words_are_not_tidied() -> None:
    """A blank before a full stop is the author's; only what stood before a removed marker goes."""
    assert (await checked("The Board of Education . [2] Run `ls .` now. [2]")).text == (
        "The Board of Education . [1] Run `ls .` now. [1]"
    )


async def test_a_listing_keeps_its_text_and_is_cited_below() -> None:
    """Indices in code cite nothing; the marker below a fence is renumbered like any other."""
    checked_draft = await checked("Do this [3].\n\n```python\nx[0] = <b>1</b>  # https://a.b\n```\n[3]\n")

    assert checked_draft.text == "Do this [1].\n\n```python\nx[0] = <b>1</b>  # https://a.b\n```\n[1]"
    assert checked_draft.removals.invented_citations == 0
