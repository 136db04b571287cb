"""What embedders must hold for any input: nothing unfit passes the check, no text is lost on the way into windows and
batches, and no header breaks the reading of it."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lectern.domain.errors import ProviderError
from lectern.models.batching import check_vectors, in_batches, in_order
from lectern.models.cohere import WINDOW_TOKENS
from lectern.models.local.packaged_models import TOKENIZER, WEIGHTS
from lectern.models.provider_errors import retry_after, status_error
from lectern.models.windows import byte_pieces, passages, token_pieces
from tests.conftest import SAMPLE_BOOK

numbers = st.one_of(
    st.floats(), st.floats(-1, 1), st.integers(), st.booleans(), st.none(), st.text(max_size=3), st.just(10**400)
)
vectors = st.one_of(st.lists(numbers, min_size=3, max_size=5), st.none(), st.text(max_size=4), st.tuples(numbers))
# Code, prose, other scripts, words without end: what books are made of.
texts = st.lists(
    st.one_of(
        st.sampled_from(
            ["the robot ", "moves.\n\n", "def run(self):\n", "    ", "0x3f, ", "漢字。", "naïve ", "🤖", "a" * 90]
        ),
        st.text(max_size=8),
    ),
    max_size=60,
).map("".join)


@given(st.lists(vectors, max_size=4), st.integers(0, 4))
def test_nothing_unfit_passes(vectors: list[object], count: int) -> None:
    """What is given out is right in number and length, finite and neither zero nor beyond single precision; everything
    else is the provider's error, and no other."""
    passed = None
    with suppress(ProviderError):
        passed = check_vectors("acme", vectors, count=count, dimensions=4)

    assert passed is None or len(passed) == count
    for vector in passed or []:
        assert len(vector) == 4
        assert all(type(number) is float and math.isfinite(number) for number in vector)
        assert 1e-6 <= math.hypot(*vector) <= 1e6


@given(st.lists(st.lists(st.floats(-1, 1), min_size=4, max_size=4), max_size=4))
def test_the_fit_pass_unchanged(vectors: list[list[float]]) -> None:
    """The check gives back what it was given."""
    vectors = [[*vector[:3], 1.0] for vector in vectors]

    assert check_vectors("acme", vectors, count=len(vectors), dimensions=4) == vectors


@given(st.lists(st.one_of(st.integers(-1, 4), st.none(), st.booleans(), st.floats()), max_size=5), st.integers(0, 4))
def test_vectors_find_their_texts_or_fail(places: list[object], count: int) -> None:
    """Each place once, in any order, gives that order; anything else is an error."""
    numbered = [(place, f"vector {place}") for place in places]
    fits = all(type(place) is int for place in places) and sorted(places) == list(range(count))  # type: ignore[type-var]  # compared only where all are ints
    if fits:
        assert in_order("acme", numbered, count) == [f"vector {place}" for place in range(count)]
    else:
        with pytest.raises(ProviderError, match="acme"):
            in_order("acme", numbered, count)


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 50)), st.integers(1, 5), st.integers(1, 100))
def test_batches_hold_every_text_once(sizes: dict[str, int], max_texts: int, max_bytes: int) -> None:
    """Within both limits, by size, none lost; only a text that is too large by itself goes beyond, and alone."""
    batches = list(in_batches(sizes, max_texts=max_texts, max_bytes=max_bytes))
    sent_texts = [text for batch in batches for text in batch]

    assert sorted(sent_texts) == sorted(sizes)
    assert [sizes[text] for text in sent_texts] == sorted(sizes.values())
    assert all(0 < len(batch) <= max_texts for batch in batches)
    assert all(len(batch) == 1 or sum(sizes[text] for text in batch) <= max_bytes for batch in batches)


@pytest.mark.parametrize("pieces", [token_pieces, byte_pieces])
@given(texts, st.lists(st.text("ab ", max_size=30), max_size=3), st.integers(90, 400))
def test_windows_lose_nothing_and_fit(pieces, text: str, trail: list[str], limit: int) -> None:
    """Together the windows hold every visible character in order, each under the trail, none over the limit."""
    head = " > ".join(" ".join(name.split()) for name in trail if name.strip())
    windows = passages(trail, text, limit=limit, pieces=pieces)

    if len(pieces(head)) > limit // 4:  # such a head is read once
        assert "".join("".join(windows).split()) == "".join(f"{head}{text}".split())
    else:
        assert all(window.startswith(head) for window in windows)
        assert "".join("".join(window[len(head) :] for window in windows).split()) == "".join(text.split())
    assert all(len(pieces(window)) <= limit for window in windows)


@given(texts)
def test_bytes_are_not_counted_short(text: str) -> None:
    """The measure for OpenAI is the size on the wire, but for long runs of white space."""
    text = " ".join(text.split())

    assert len(byte_pieces(text)) == len(text.encode("utf-8", "surrogatepass"))


def test_the_estimate_is_above_real_word_pieces() -> None:
    """No window of the sample book is over the 512 of a real word piece tokenizer, its two marks included."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(WEIGHTS / TOKENIZER))
    windows = [window for page in _pages(SAMPLE_BOOK) for window in _windows(page)]

    assert len(windows) > 10
    assert max(len(tokenizer.encode(window).ids) for window in windows) <= 512


def _pages(book: Path) -> list[str]:
    return [file.read_text(encoding="utf-8") for file in sorted(book.rglob("*.md*"))]


def _windows(page: str) -> tuple[str, ...]:
    return passages(("Robots", "A page"), page, limit=WINDOW_TOKENS, pieces=token_pieces)


@given(st.text(max_size=40), st.sampled_from(["retry-after", "retry-after-ms"]))
def test_any_header_can_be_read(header: str, name: str) -> None:
    """A wait is a number of seconds, not negative and not endless, or nothing was said."""
    wait = retry_after({name: header})

    assert wait is None or (math.isfinite(wait) and wait >= 0)


@given(st.integers(100, 599), st.text(max_size=30), st.text(max_size=30))
def test_no_word_of_the_providers_crosses_the_border(status: int, text: str, code: str) -> None:
    """Whatever the status, it becomes an error of ours; a code is repeated only if it is made of plain letters."""
    error = status_error("acme", status, {"retry-after": text}, key_name="ACME_API_KEY", code=f"sk-{code}")

    assert error.provider == "acme"
    assert "sk-" not in str(error)
