"""Secrets, words of the instructions and words of the operator do not leave, in whatever pieces and spacing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lectern.answering.confidential import Confidential, ConfidentialFilter

SECRET = "sk-9f2-77aa"
INSTRUCTIONS = "Keep close to the wording of the book and never name the colour zanthophyll to any reader."
CONFIDENTIAL = Confidential(
    [INSTRUCTIONS], [SECRET, "aXbaX"], public_text="Keep close to the wording of the book", signs=["NOT_COVERED"]
)


def sent(text: str, cuts: tuple[int, ...] = (), open_words: frozenset[str] = frozenset()) -> tuple[str, int]:
    """What leaves of a text that comes in pieces, and how much was blocked."""
    words = ConfidentialFilter(confidential=CONFIDENTIAL, is_open=open_words.__contains__)
    ends = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    out = "".join(words.feed(text[start:end]) for start, end in pairwise(ends))
    return out + words.finish(), words.blocked


cuttings = st.lists(st.integers(0, 500), max_size=20).map(tuple)
spaces = st.sampled_from(["", " ", "\n", "  ", "\t\n "])


@settings(max_examples=300, deadline=None)
@given(st.lists(spaces, min_size=len(SECRET), max_size=len(SECRET)), cuttings, st.sampled_from(["", ".", "x", " end"]))
def test_a_secret_does_not_leave_in_any_spacing(gaps: list[str], cuts: tuple[int, ...], end: str) -> None:
    """However it is spaced and cut, and whatever follows it."""
    spaced = "".join(sign + gap for sign, gap in zip(SECRET, gaps, strict=True))
    text, blocked = sent(f"The key is {spaced}{end}", cuts)

    assert SECRET not in "".join(text.split())
    assert blocked == 1


@settings(max_examples=200, deadline=None)
@given(cuttings)
def test_a_secret_that_ends_as_it_begins_does_not_leave(cuts: tuple[int, ...]) -> None:
    """What looks like the beginning of the next secret may be the end of this one."""
    text, blocked = sent("One aXbaX two aXbaXbaX three", cuts)

    assert "aXbaX" not in text
    assert blocked == 2


@pytest.mark.parametrize("text", ["sk-9f2-77a", "sk-", "A sketch of 9f2-77aa.", "aXba is no secret", "s"])
def test_the_beginning_of_a_secret_is_no_secret(text: str) -> None:
    """What turns out to be something else is sent as it was written."""
    assert sent(text, tuple(range(len(text)))) == (text, 0)


@settings(max_examples=200, deadline=None)
@given(cuttings)
def test_a_sequence_of_words_of_the_instructions_is_cut_off(cuts: tuple[int, ...]) -> None:
    """At its eighth word in the stream; from the finished text it is removed whole. Seven words are a coincidence."""
    text, blocked = sent("It says: keep close to the wording of the book and never more. Fine.", cuts)

    assert text == "It says: keep close to the wording of the more. Fine."
    assert blocked == 1
    assert CONFIDENTIAL.without_runs("It says: keep close to the wording of the book and never more. Fine.") == (
        "It says:  more. Fine.", 1,
    )  # fmt: skip
    assert sent("Keep close to the wording of the garden.", cuts) == ("Keep close to the wording of the garden.", 0)


@settings(max_examples=100, deadline=None)
@given(cuttings)
def test_private_words_of_the_operator_leave_only_if_they_are_open(cuts: tuple[int, ...]) -> None:
    """A word that only the added instructions have is removed, unless the book or the reader uses it."""
    assert sent("It is Zanthophyll, yes.", cuts) == ("It is , yes.", 1)
    assert sent("It is Zanthophyll, yes.", cuts, frozenset({"zanthophyll"})) == ("It is Zanthophyll, yes.", 0)
    assert sent("The wording of a book.", cuts) == ("The wording of a book.", 0)


@settings(max_examples=100, deadline=None)
@given(cuttings)
def test_signs_for_programs_do_not_leave(cuts: tuple[int, ...]) -> None:
    """Whatever decorates them."""
    assert sent("The price: **NOT_COVERED**.", cuts) == ("The price: ****.", 1)
