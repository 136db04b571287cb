"""The sentences that readers see, in one file per language. The server writes those of the book's language, and the
page and the widget load the same files. A language that the page is not translated into has a file in the folder
`replies`, with what the server itself writes: refusals, disclaimers and the like. English stands in for the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

STRINGS_FOLDER = Path(__file__).parent.parent / "strings"
REPLIES_FOLDER = STRINGS_FOLDER / "replies"
DEFAULT_LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Strings:
    """The sentences of one language, by their keys."""

    language: str
    sentences: Mapping[str, str]

    def __call__(self, key: str, **values: object) -> str:
        """A sentence with its `{names}` filled in. Where `count` is 1, `key.one` is used if there is one."""
        singular = f"{key}.one"
        found = singular if values.get("count") == 1 and singular in self.sentences else key
        return self.sentences[found].format(**values)

    def translated(self, english: str) -> str:
        """A fixed English sentence in this language; a sentence that is not in the files stays as it is."""
        key = _keys_of_english().get(english)
        return english if key is None else self.sentences[key]


@cache
def languages() -> tuple[str, ...]:
    """The languages of the page, which have all sentences."""
    return tuple(sorted(file.stem for file in STRINGS_FOLDER.glob("*.json")))


@cache
def reply_languages() -> tuple[str, ...]:
    """The further languages that the server replies in."""
    return tuple(sorted(file.stem for file in REPLIES_FOLDER.glob("*.json")))


def strings_of(language: str) -> Strings:
    """The sentences of a language such as `de` or `de-AT`; the English ones if it has no file."""
    main = language.lower().partition("-")[0]
    return _load(main if main in (*languages(), *reply_languages()) else DEFAULT_LANGUAGE)


@cache
def _load(language: str) -> Strings:
    if language not in languages():
        return Strings(language, {**_load(DEFAULT_LANGUAGE).sentences, **_sentences(REPLIES_FOLDER, language)})
    return Strings(language, _sentences(STRINGS_FOLDER, language))


def _sentences(folder: Path, language: str) -> dict[str, str]:
    sentences: dict[str, str] = json.loads((folder / f"{language}.json").read_text(encoding="utf-8"))
    return sentences


@cache
def _keys_of_english() -> Mapping[str, str]:
    return {sentence: key for key, sentence in _load(DEFAULT_LANGUAGE).sentences.items()}
