"""Words: how texts are cut into them, and which of them tell nothing."""

from __future__ import annotations

from lectern.conversations.topics import topics_of
from lectern.text.words import letters_of, parts_of, spelt_words, terms_of, words_of

MIXED_TEXT = "cmd_vel2 isn't Ärger"


def test_a_text_is_cut_into_words_in_three_ways() -> None:
    """As it is written, by the parts of names, and by letters alone; in every script."""
    assert words_of(MIXED_TEXT) == ["cmd_vel2", "isn", "t", "Ärger"]
    assert parts_of(MIXED_TEXT) == ["cmd", "vel2", "isn", "t", "Ärger"]
    assert letters_of(MIXED_TEXT) == ["cmd", "vel", "isn", "t", "Ärger"]


def test_signs_inside_a_word_can_be_kept() -> None:
    """A spelt word keeps apostrophes and points, a term every sign that joins; both say where they stand."""
    text = "'Don't' start-up /scan at 2.5 s, node.js."

    assert [word[0] for word in spelt_words(text)] == ["Don't", "start", "up", "scan", "at", "2.5", "s", "node.js"]
    assert [term[0] for term in terms_of(text)] == ["Don't", "start-up", "scan", "at", "2.5", "s", "node.js"]
    assert [term.start() for term in terms_of(text)][:2] == [1, 8]


def test_topics_are_made_of_words_that_tell() -> None:
    """Words that hold a sentence together, or ask, end a phrase and are in none; the parts of a book may be a topic."""
    assert topics_of(["Which call gives up a Nav2 goal?"]) == "Nav2 goal, call"
    assert topics_of(["What's a Nav2 goal?"]) == "Nav2 goal"
    assert topics_of(["Please explain the lessons of chapter 7."]) == "lessons of chapter 7"


def test_a_phrase_goes_across_of_and_ends_at_punctuation() -> None:
    """`quality of service` is one subject; words on both sides of a comma or bracket are no phrase."""
    assert topics_of(["What is quality of service?"]) == "quality of service"
    assert topics_of(["Which do I see? (about transient local, best effort)"]) == "transient local, best effort, see"
