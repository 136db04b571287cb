"""Which tokens of a document a chunk holds."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lectern.domain.chunks import Chunk
from lectern.evals.chunking import TokenText, tokens_by_chunk
from tests.making import chunk

words = st.lists(st.sampled_from("the robot sees a wall , and stops . then it turns".split()), min_size=1, max_size=60)


def cut(text: str, first: int, last: int) -> Chunk:
    """A chunk of these lines."""
    return replace(chunk(text), id=f"{first}-{last}-{len(text)}", line_start=first, line_end=last)


def test_tokens_of_characters_and_lines() -> None:
    """A token counts when any of its characters lies inside; lines are counted from 1."""
    text = TokenText("One two,\nthree four.\n")

    assert text.words == ["One", "two", ",", "three", "four", "."]
    assert list(text.between(5, 10)) == [1, 2, 3]
    assert list(text.between(3, 4)) == []
    assert list(text.of_lines(2, 2)) == [3, 4, 5]
    assert list(text.of_lines(1, 9)) == [0, 1, 2, 3, 4, 5]


def test_markup_that_was_dropped_is_stepped_over() -> None:
    """A chunk without the tags of its lines holds their words and not the tags."""
    text = TokenText('Press <Button kind="big">start</Button> and wait for the light.')
    first_chunk = cut("Press start and wait for the light.", 1, 1)

    tokens = tokens_by_chunk(text, [first_chunk])[first_chunk.id]

    assert [text.words[place] for place in sorted(tokens)] == "Press start and wait for the light .".split()


def test_what_the_reader_adds_counts_as_nothing() -> None:
    """A header repeated at the head of a table's second part belongs to the first part alone."""
    text = TokenText("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n")
    first_chunk = cut("| a | b |\n|---|---|\n| 1 | 2 |", 1, 3)
    two = cut("| a | b |\n|---|---|\n| 3 | 4 |", 4, 4)

    tokens = tokens_by_chunk(text, [first_chunk, two])

    assert tokens[first_chunk.id] == frozenset(text.of_lines(1, 3))
    assert tokens[two.id] == frozenset(text.of_lines(4, 4))


@given(words, st.integers(1, 59))
def test_a_line_cut_in_two_is_held_once(text: list[str], at: int) -> None:
    """However often its words recur, every token of a line belongs to exactly one of the two chunks made of it."""
    halves = [" ".join(text[:at]), " ".join(text[at:])]
    chunks = [replace(cut(half, 1, 1), id=str(number)) for number, half in enumerate(halves) if half]

    token_lists = list(tokens_by_chunk(TokenText(" ".join(text)), chunks).values())

    assert sorted(place for tokens in token_lists for place in tokens) == list(range(len(text)))
