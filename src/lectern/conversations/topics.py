"""What a talk is about, without a language model: the phrases that its questions share, else those of the last ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from lectern.domain.threads import SUMMARY_LENGTH
from lectern.text.words import ASKING_WORDS, FUNCTION_WORDS

MOST_PHRASES = 5
MOST_WORDS = 3  # of a phrase
_WORD = re.compile(r"[\w][\w.+#/-]*\w|\w")
_SAYING_NOTHING = FUNCTION_WORDS | ASKING_WORDS


def topics_of(questions: Sequence[str]) -> str:
    """A line of at most 200 characters: phrases that come up most, the latest first among equals."""
    counts: Counter[str] = Counter()
    shown: dict[str, str] = {}
    latest: dict[str, int] = {}
    for place, question in enumerate(questions):
        for phrase in _phrases(question):
            key = phrase.casefold()
            counts[key] += 1
            shown.setdefault(key, phrase)
            latest[key] = place
    ranked = sorted(counts, key=lambda key: (-counts[key], -latest[key], -len(key.split())))
    return _line([shown[key] for key in _distinct(ranked)])


def _phrases(question: str) -> list[str]:
    """Runs of words that mean something, as they were written."""
    phrases: list[str] = []
    run: list[str] = []
    for word in [*_WORD.findall(question), "the"]:
        if word.casefold() in _SAYING_NOTHING:
            if run:
                phrases.append(" ".join(run[-MOST_WORDS:]))
            run = []
        else:
            run.append(word)
    return phrases


def _distinct(ranked: Sequence[str]) -> list[str]:
    """The first phrases none of which is part of another."""
    kept: list[str] = []
    for phrase in ranked:
        words = set(phrase.split())
        if not any(words <= set(other.split()) or words >= set(other.split()) for other in kept):
            kept.append(phrase)
        if len(kept) == MOST_PHRASES:
            break
    return kept


def _line(phrases: Sequence[str]) -> str:
    line = ""
    for phrase in phrases:
        longer = f"{line}, {phrase}" if line else phrase[:SUMMARY_LENGTH]
        if len(longer) > SUMMARY_LENGTH:
            break
        line = longer
    return line
