"""What a conversation is about, without a language model: the phrases that its questions share, else those of the last
questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lectern.domain.threads import SUMMARY_LENGTH
from lectern.text.words import ASKING_WORDS, FUNCTION_WORDS, terms_of

MAX_PHRASES = 5
MAX_PHRASE_WORDS = 3
_STOP_WORDS = FUNCTION_WORDS | ASKING_WORDS


def topics_of(questions: Sequence[str]) -> str:
    """A line of at most 200 characters: the most frequent phrases, the latest first among equals."""
    counts: Counter[str] = Counter()
    spelling: dict[str, str] = {}
    latest: dict[str, int] = {}
    for place, question in enumerate(questions):
        for phrase in _phrases(question):
            key = phrase.casefold()
            counts[key] += 1
            spelling.setdefault(key, phrase)
            latest[key] = place
    ranked = sorted(counts, key=lambda key: (-counts[key], -latest[key], -len(key.split())))
    return _line([spelling[key] for key in _distinct(ranked)])


def _phrases(question: str) -> list[str]:
    """The runs of content words in a question, as they were written; `of` joins, as in `quality of service`."""
    runs: list[list[str]] = []
    end = -1
    for term in terms_of(question):
        word = term[0].casefold()
        if _STOP_WORDS & {word, word.partition("'")[0]}:  # `what's` says as little as `what`
            continue
        between = question[end : term.start()].split() if runs else None
        if between is not None and [joint.casefold() for joint in between] in ([], ["of"]):
            runs[-1].append(" ".join([*between, term[0]]))
        else:
            runs.append([term[0]])
        end = term.end()
    return [" ".join(run[-MAX_PHRASE_WORDS:]).removeprefix("of ") for run in runs]


def _distinct(ranked: Sequence[str]) -> list[str]:
    """The first phrases such that none is part of another."""
    phrases: list[str] = []
    for phrase in ranked:
        words = set(phrase.split())
        if not any(words <= set(earlier.split()) or words >= set(earlier.split()) for earlier in phrases):
            phrases.append(phrase)
        if len(phrases) == MAX_PHRASES:
            break
    return phrases


def _line(phrases: Sequence[str]) -> str:
    line = ""
    for phrase in phrases:
        longer = f"{line}, {phrase}" if line else phrase[:SUMMARY_LENGTH]
        if len(longer) > SUMMARY_LENGTH:
            break
        line = longer
    return line
