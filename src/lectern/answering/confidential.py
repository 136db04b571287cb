"""Keeps the instructions and secrets out of a reply: sequences of words of the instructions, keys, and codes that the
operator's instructions have. Single words of the instructions may be used. A secret is recognised as a page shows it:
with markup, escapes, entities, markers or white space between its characters.

The text is filtered as it comes: the last word is held back until it is complete, and whatever may become a secret
until it is not one. A sequence of words is cut off in the stream at its eighth word; from the finished text it is
removed whole."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from string import ascii_lowercase, ascii_uppercase

from lectern.text.words import word_matches

DISCLOSED_WORDS = 8  # in a row; fewer may be a coincidence
MIN_SECRET = 12  # characters; a shorter one may be a placeholder, or the name of a product or a standard
MIN_VISIBLE = 8  # characters of a secret that no markup consists of
KEY_PREFIX = "sk-"  # of keys of any length
MAX_SPACING = 20  # characters of markup between two characters of a secret, about
MAX_HELD_WORD = 80  # characters; a longer word is sent in parts
_LAST_WORD = re.compile(r"\w+\Z")
_TOKEN = re.compile(r"[^\s\"'`,;()<>\[\]{}]+")
_MIXED = re.compile(r"[a-z]\d|\d[a-z]")
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)  # `str.lower` may change the length of a text
_HIDDEN = r"[\s\\*_~`\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]"  # what Markdown or a font does not show
_INVISIBLE = re.compile(_HIDDEN)
_IN_TAG = rf"[/!A-Za-z][^<>]{{0,{MAX_SPACING}}}"
_UNIT = re.compile(
    rf"(?P<markup><{_IN_TAG}>|\[\d{{1,4}}\])|(?P<entity>&[#\w]{{1,32}};)|(?P<sign>.)",
    re.DOTALL,
)
_BEGUN_UNIT = re.compile(rf"(?:<(?:{_IN_TAG})?|\[\d{{0,4}}|&[#\w]{{0,32}})\Z")
_BEGUN_ENTITY = re.compile(r"&[#\w]{0,32}\Z")


IsPublic = Callable[[str], bool]  # whether the book or the reader has a code, in small letters


class Confidential:
    """Texts that a reply must not contain."""

    def __init__(self, texts: Sequence[str], keys: Sequence[str], *, signs: Sequence[str] = ()) -> None:
        """`texts` are the instructions; `signs` are words that only programs may see."""
        self._runs = {run for text in texts for run in _runs(text)}
        self._signs = {sign.lower() for sign in signs}
        self._keys = {_View(key).text for key in keys if _is_key(key)}
        codes = {_View(code).text: code.translate(_SMALL) for text in texts for code in _codes(text)}
        self._codes = {view: code for view, code in codes.items() if len(view) >= MIN_VISIBLE}
        self._secrets = sorted(self._keys | set(self._codes), key=len, reverse=True)
        self._secret = re.compile("|".join(map(re.escape, self._secrets)) or r"(?!)")

    def is_run(self, words: Sequence[str]) -> bool:
        """Whether these words, in lower case, follow each other in the instructions."""
        return tuple(words) in self._runs

    def is_sign(self, word: str) -> bool:
        """Whether a word, in lower case, is a sign for programs."""
        return word in self._signs

    def without_secrets(self, text: str, is_public: IsPublic) -> tuple[str, int]:
        """The text without secrets, in any case and form, and how many there were. A code that is public stays."""
        view = _View(text)
        out, place = [], 0
        for match in self._secret.finditer(view.text):
            if match[0] in self._keys or not is_public(self._codes[match[0]]):
                out.append(text[place : view.starts[match.start()]])
                place = view.ends[match.end() - 1]
        return "".join([*out, text[place:]]), len(out)

    def begun_secret(self, text: str) -> int:
        """Where at the end of a text a secret may have begun; the length of the text if none has."""
        if not self._secrets:
            return len(text)
        tail_start = max(0, len(text) - MAX_SPACING * len(self._secrets[0]))
        begun = _BEGUN_UNIT.search(text, tail_start)
        view = _View(text[tail_start : begun.start() if begun else len(text)])
        place = min((_begun(view.text, secret) for secret in self._secrets), default=len(view.text))
        # a secret may end as it begins: what looks like the beginning of the next one is then its end
        matches = self._secret.finditer(view.text)
        place = next((match.start() for match in matches if match.start() < place < match.end()), place)
        if place < len(view.text):
            return tail_start + view.starts[place]
        return begun.start() if begun and _BEGUN_ENTITY.match(text, begun.start()) else len(text)

    def without_runs(self, text: str) -> tuple[str, int]:
        """A finished text without sequences of words of the instructions, and how many there were."""
        words = list(_shown_words(text))
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
    is_public: IsPublic
    blocked: int = 0
    _buffer: str = ""
    _words: deque[str] = field(default_factory=lambda: deque(maxlen=DISCLOSED_WORDS))
    _in_run: bool = False
    _last_signs: str = ""  # of what was filtered

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
        clean, count = self.confidential.without_secrets(self._buffer[:end], self.is_public)
        self._buffer = clean + self._buffer[end:]
        self.blocked += count
        return len(clean)

    def _take(self, end: int) -> str:
        text, self._buffer = self._buffer[:end], self._buffer[end:]
        return "".join(self._sent(text))

    def _sent(self, text: str) -> Iterator[str]:
        place = 0
        before, self._last_signs = self._last_signs, (self._last_signs + text)[-2:]
        for word in _shown_words(text, before):
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
        is_sign = self.confidential.is_sign(word)
        self.blocked += (self._in_run and not was_in_run) or (is_sign and not self._in_run)
        return not self._in_run and not is_sign


class _View:
    """A text as a page shows it, in small letters and without white space, and the position of each character."""

    def __init__(self, text: str) -> None:
        signs: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []
        for unit in _UNIT.finditer(text):
            if unit["markup"]:
                continue
            shown = _INVISIBLE.sub("", unescape(unit["entity"]) if unit["entity"] else unit["sign"])
            signs.append(shown)
            self.starts += [unit.start()] * len(shown)
            self.ends += [unit.end()] * len(shown)
        self.text = "".join(signs).translate(_SMALL)


def _begun(view: str, secret: str) -> int:
    """Where at the end of what a page shows a secret may have begun."""
    place = view.find(secret[0], max(0, len(view) - len(secret) + 1))
    while place >= 0:
        if secret.startswith(view[place:]):
            return place
        place = view.find(secret[0], place + 1)
    return len(view)


def _is_key(key: str) -> bool:
    """Whether a key is a secret. Servers on the same machine take any word for a key, such as `ollama` or `EMPTY`."""
    has_form = len(key) >= MIN_SECRET or key.startswith(KEY_PREFIX)
    return has_form and re.search(r"\d", key) is not None and len(_View(key).text) >= MIN_VISIBLE


def _shown_words(text: str, before: str = "") -> Iterator[re.Match[str]]:
    """The words of a text without numbers, such as those of markers, and the names of entities and tags. `before` is
    what comes before the text."""
    for word in word_matches(text):
        signs = (before + text[: word.start()])[-2:] if word.start() < 2 else text[word.start() - 2 : word.start()]  # noqa: PLR2004  # `&#`
        if not word[0].isdecimal() and not signs.endswith(("&", "&#", "<", "</")):
            yield word


def _codes(text: str) -> Iterator[str]:
    """What looks like a password or a key in a text: letters with numbers among them, or capitals and numbers."""
    for token in _TOKEN.findall(text):
        code = token.strip(".:!?*_")
        is_mixed = _MIXED.search(code) or re.search(r"[A-Z]", code)
        if len(code) >= MIN_SECRET and is_mixed and re.search(r"\d", code):
            yield code


def _runs(text: str) -> set[tuple[str, ...]]:
    words = [word[0].lower() for word in _shown_words(text)]
    return {tuple(words[at : at + DISCLOSED_WORDS]) for at in range(len(words) - DISCLOSED_WORDS + 1)}
