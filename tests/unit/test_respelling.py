"""A question is read as the passages spell it, and otherwise as it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.answering.respelling import respelt

TEXTS = [
    "The gyroscope of the Jetson Orin board drifts. Whisper runs on it, and so does Gazebo.",
    "The semi-implicit Euler method keeps energy. A gyroscope has noise.",
]
WORD = st.text(st.characters(categories=("Ll", "Lu", "Nd"), max_codepoint=0x17F), min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("how much noise does a usual gyrosope have", "how much noise does a usual gyroscope have"),  # one less
        ("Which Gazeebo version is it?", "Which gazebo version is it?"),  # one more
        ("Does wisper run on a Jeston?", "Does whisper run on a jetson?"),  # swapped
        ("what is the Eular method", "what is the euler method"),  # another
        ("Which gyroscopes drift?", "Which gyroscopes drift?"),  # the same word in another form
        ("Is there a giroscopp?", "Is there a giroscopp?"),  # two letters
        ("What is an orrin?", "What is an orrin?"),  # `Orin` has too few letters
        ("What is /whispr/node or `Gazeebo` or Whispr2?", "What is /whispr/node or `Gazeebo` or Whispr2?"),  # names
        ("Which other methods are there?", "Which other methods are there?"),
    ],
)
def test_a_misspelt_word_is_read_as_the_passages_write_it(asked: str, read: str) -> None:
    """One letter more, less, other or swapped, in words of five letters and more that are no names."""
    assert respelt(asked, TEXTS) == read


@given(st.lists(WORD, max_size=12), st.lists(WORD, max_size=12))
def test_nothing_but_rare_unknown_words_is_changed(asked: list[str], held: list[str]) -> None:
    """The words stay in number and place, what the passages have stays as it is, and reading again changes nothing."""
    question, text = " ".join(asked), " ".join(held)
    read = respelt(question, [text])

    assert len(read.split()) == len(asked)
    assert all(
        now == word or now in {one.lower() for one in held} for now, word in zip(read.split(), asked, strict=True)
    )
    assert respelt(read, [text]) == read
    assert respelt(text, [text]) == text
    assert respelt(question, []) == question
