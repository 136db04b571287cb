"""What a talk is about, without a language model: the phrases that its questions share, else those of the last ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from lectern.domain.threads import SUMMARY_LENGTH

MOST_PHRASES = 5
MOST_WORDS = 3  # of a phrase
_WORD = re.compile(r"[\w][\w.+#/-]*\w|\w")
_STOP = frozenset(
    """a about after all also am an and any are as at be been before between both but by can compare could describe did
    do does doing each else example examples explain few for from get give go had has have having help here how i if in
    instead into is it its just kind know let like list many may me mean meant means might more most much must my name
    need next not of off on once one only or other our out over please say should show so some someone such take
    tell than thank thanks that the their them then there these they thing things this those to too under understand up
    use used using very want was way we well were what when where which while who whom why will with
    would you your""".split()
)


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
        if word.casefold() in _STOP:
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
