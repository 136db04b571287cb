"""Keeps words of the instructions and secrets out of a reply. The text is filtered as it comes: the last word is held
back until it is complete, and whatever may become a secret until it is not one. A sequence of words of the instructions
is cut off in the stream at its eighth word; from the finished text it is removed whole."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lectern.text.words import stem, word_matches, word_weight, words_of

DISCLOSED_WORDS = 8  # in a row; fewer may be a coincidence
MIN_PRIVATE_WORD = 4  # letters
MAX_SPACING = 20  # characters of white space between two characters of a secret, about
MAX_HELD_WORD = 80  # characters; a longer word is sent in parts
_LAST_WORD = re.compile(r"\w+\Z")


class Confidential:
    """Texts that a reply must not contain: sequences of words of our instructions, the operator's own unusual words,
    and secrets."""

    def __init__(
        self, texts: Sequence[str], secrets: Sequence[str], *, public_text: str = "", signs: Sequence[str] = ()
    ) -> None:
        """The words of `public_text` may be used; `signs` are words that only programs may see."""
        self._runs = {run for text in texts for run in _runs(text)}
        public = set(_lower_words(public_text))
        self._private = {
            word
            for text in texts
            for word in _lower_words(text)
            if len(word) >= MIN_PRIVATE_WORD and word not in public and word_weight(stem(word)) >= 1
        }
        self._signs = {sign.lower() for sign in signs}
        self.secrets = tuple(secret for secret in secrets if secret)
        longest_first = sorted(self.secrets, key=len, reverse=True)
        self._secret = re.compile("|".join(r"\s*".join(map(re.escape, secret)) for secret in longest_first) or r"(?!)")

    def is_run(self, words: Sequence[str]) -> bool:
        """Whether these words, in lower case, follow each other in the instructions."""
        return tuple(words) in self._runs

    def is_private(self, word: str) -> bool:
        """Whether a word, in lower case, may be sent only if the book or the reader uses it, too."""
        return word in self._private

    def is_sign(self, word: str) -> bool:
        """Whether a word, in lower case, is a sign for programs."""
        return word in self._signs

    def without_secrets(self, text: str) -> tuple[str, int]:
        """The text without secrets, and how many there were, in any spacing."""
        return self._secret.subn("", text)

    def begun_secret(self, text: str) -> int:
        """Where at the end of a text a secret may have begun; the length of the text if none has."""
        end = min((_begun(text, secret) for secret in self.secrets), default=len(text))
        # a secret may end as it begins: what looks like the beginning of the next one is then its end
        return next((match.start() for match in self._secret.finditer(text) if match.start() < end < match.end()), end)

    def without_runs(self, text: str) -> tuple[str, int]:
        """A finished text without sequences of words of the instructions, and how many there were."""
        words = list(word_matches(text))
        covered: set[int] = set()
        for first in range(len(words) - DISCLOSED_WORDS + 1):
            places = range(first, first + DISCLOSED_WORDS)
            if self.is_run([words[place][0].lower() for place in places]):
                covered.update(places)
        out, end, count = [], 0, 0
        for place, word in enumerate(words):
            if place not in covered:
                continue
            if place - 1 not in covered:
                out.append(text[end : word.start()])
                count += 1
            end = word.end()
        return "".join([*out, text[end:]]), count


@dataclass(slots=True)
class ConfidentialFilter:
    """Filters one text as it comes."""

    confidential: Confidential
    is_open: Callable[[str], bool]  # whether the book or the reader uses a word
    blocked: int = 0
    _buffer: str = ""
    _words: deque[str] = field(default_factory=lambda: deque(maxlen=DISCLOSED_WORDS))
    _in_run: bool = False

    def feed(self, text: str) -> str:
        """Add text; returns what may be sent now."""
        self._buffer += text
        # the last word is cut off after secrets are removed: a secret may be several words
        end = self._remove_secrets(self.confidential.begun_secret(self._buffer))
        word = _LAST_WORD.search(self._buffer, max(0, end - MAX_HELD_WORD), end)
        return self._take(word.start() if word else end)

    def finish(self) -> str:
        """End the text; returns the rest of what may be sent."""
        return self._take(self._remove_secrets(len(self._buffer)))

    def _remove_secrets(self, end: int) -> int:
        """Remove the secrets before this position; returns where it is then."""
        clean, count = self.confidential.without_secrets(self._buffer[:end])
        self._buffer = clean + self._buffer[end:]
        self.blocked += count
        return len(clean)

    def _take(self, end: int) -> str:
        text, self._buffer = self._buffer[:end], self._buffer[end:]
        return "".join(self._sent(text))

    def _sent(self, text: str) -> Iterator[str]:
        place = 0
        for word in word_matches(text):
            if not self._in_run:
                yield text[place : word.start()]
            place = word.end()
            if self._may_pass(word[0].lower()):
                yield word[0]
        if not self._in_run:
            yield text[place:]

    def _may_pass(self, word: str) -> bool:
        self._words.append(word)
        was_in_run = self._in_run
        self._in_run = len(self._words) == DISCLOSED_WORDS and self.confidential.is_run(self._words)
        private = self.confidential.is_sign(word) or (self.confidential.is_private(word) and not self.is_open(word))
        self.blocked += (self._in_run and not was_in_run) or (private and not self._in_run)
        return not self._in_run and not private


def _begun(text: str, secret: str) -> int:
    """Where at the end of a text a secret may have begun, in any spacing."""
    tail = "".join(text[-MAX_SPACING * len(secret) :].split())
    place = tail.find(secret[0], max(0, len(tail) - len(secret) + 1))
    while place >= 0:
        if secret.startswith(tail[place:]):
            return _place_from_end(text, len(tail) - place)
        place = tail.find(secret[0], place + 1)
    return len(text)


def _place_from_end(text: str, count: int) -> int:
    """The position of the character that is so many visible characters before the end."""
    place = len(text)
    while count:
        place -= 1
        count -= not text[place].isspace()
    return place


def _lower_words(text: str) -> list[str]:
    return [word.lower() for word in words_of(text)]


def _runs(text: str) -> set[tuple[str, ...]]:
    words = _lower_words(text)
    return {tuple(words[at : at + DISCLOSED_WORDS]) for at in range(len(words) - DISCLOSED_WORDS + 1)}
