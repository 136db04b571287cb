"""A question is read as the passages spell it, and otherwise as it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.confidence.spelling import respell, unknown_words, variants
from lectern.text.words import one_edit, stem

TEXTS = [
    "The gyroscope of the Jetson Orin board drifts. Whisper runs on it, and so does Gazebo.",
    "The semi-implicit Euler method keeps energy. A gyroscope has noise.",
]
WORD = st.text(st.characters(categories=("Ll", "Lu", "Nd"), max_codepoint=0x17F), min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("how much noise does a usual gyrosope have", "how much noise does a usual gyroscope have"),  # one less
        ("which gazeebo version is it", "which gazebo version is it"),  # one more
        ("does wihsper run on it", "does whisper run on it"),  # swapped
        ("what is the eular method", "what is the euler method"),  # another
        ("Which gyroscopes drift?", "Which gyroscopes drift?"),  # the same word in another form
        ("Is there a giroscopp?", "Is there a gyroscope?"),  # two letters of a long word
        ("Is there a jetsno here?", "Is there a jetson here?"),
        ("What is an orrin?", "What is an orin?"),
        ("What is an oran?", "What is an oran?"),  # too short for another letter in place of one
        ("Is there a gyrosgopps?", "Is there a gyrosgopps?"),  # three letters
        ("wich board shoud I take?", "which board should I take?"),  # words without content, in no text
        ("Can I breed euler nets?", "Can I breed euler nets?"),  # English words
        ("What is /whispr/node or `Gazeebo` or Whispr2?", "What is /whispr/node or `Gazeebo` or Whispr2?"),  # names
        ("When was Wisper made, and by Gazeebo?", "When was Wisper made, and by Gazeebo?"),  # perhaps other people's
        ("Which other methods are there?", "Which other methods are there?"),
    ],
)
def test_a_misspelt_word_is_read_as_the_passages_write_it(typed: str, read: str) -> None:
    """One letter more, less, other or swapped, of long words two, in words that are neither names nor English."""
    assert respell(typed, TEXTS) == read


@given(st.lists(WORD, min_size=1, max_size=8), st.data())
def test_only_rare_lower_case_words_are_changed(passage_words: list[str], data: st.DataObject) -> None:
    """Words keep their number and places, become words that the passages have, and are not changed again."""
    text = " ".join(passage_words)
    typed_words = [data.draw(st.one_of(st.just(word), _misspelt(word), WORD)) for word in passage_words]
    question = " ".join(typed_words)
    read = respell(question, [text])

    assert len(read.split()) == len(typed_words)
    for now, word in zip(read.split(), typed_words, strict=True):
        assert now == word or (word.islower() and now in {passage_word.lower() for passage_word in passage_words})
    assert respell(read, [text]) == read
    assert respell(text, [text]) == text
    assert respell(question, []) == question


@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=7, max_size=12), min_size=1, max_size=3, unique=True))
def test_a_letter_lost_is_found_again(passage_words: list[str]) -> None:
    """Unless what is left over is a word by itself, or near to another of theirs."""
    word = passage_words[0]
    lost = word[:3] + word[4:]
    read = respell(lost, [" ".join(passage_words)])

    assert read in {lost, *passage_words}
    if read == lost:
        assert stem(lost) in {stem(passage_word) for passage_word in passage_words} or not unknown_words(lost, [])


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=9))
def test_variants_are_all_words_one_letter_away(word: str) -> None:
    """With the same first letter; so the book can be asked for what a misspelt word may stand for."""
    words = variants(word)

    assert word not in words
    assert all(other[0] == word[0] and one_edit(word, other) for other in words)
    assert {word[:2] + word[3:], word[:2] + "q" + word[2:], word[:2] + word[3] + word[2] + word[4:]} - {word} <= words


def test_only_words_that_no_text_has_may_be_misspelt() -> None:
    """Words of the texts in any form, English words and names are known."""
    assert unknown_words("does the gyroscopes' wihsper breed at Whispr speed", TEXTS) == ["wihsper"]
    assert unknown_words("aaaab aaaac aaaad aaaae aaaaf", []) == ["aaaab", "aaaac", "aaaad", "aaaae"]


def _misspelt(word: str) -> st.SearchStrategy[str]:
    return st.integers(1, max(1, len(word) - 1)).map(lambda at: word[:at] + word[at + 1 :] or word)
