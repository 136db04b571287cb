"""Tells the language of a text by its script and its function words, above all whether it is English. A book need not
declare its language, and the networks that are shipped with the package read English only: their scores for other
languages are noise."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

import snowballstemmer

from lectern.text.blocks import blocks_of
from lectern.text.words import FUNCTION_WORDS, UNSPACED_RUN, letters_of, stem

MIN_FOREIGN_SHARE = 0.06  # share of foreign function words in a text that is not English
MIN_FOREIGN_RATIO = 2  # foreign function words for each English one; code and tables have few of both
MIN_FOREIGN_WORDS = 5  # fewer may be part of a name: Rio de Janeiro

LITTLE_WORDS_FILE = Path(__file__).parent / "little_words.txt"  # function words of many languages

_CODES = {
    "German": "de",
    "French": "fr",
    "Spanish": "es",
    "Portuguese": "pt",
    "Italian": "it",
    "Dutch": "nl",
    "Swedish": "sv",
    "Danish": "da",
    "Norwegian": "no",
    "Polish": "pl",
    "Czech": "cs",
    "Turkish": "tr",
    "Romanian": "ro",
    "Hungarian": "hu",
    "Russian": "ru",
    "Ukrainian": "uk",
    "Bulgarian": "bg",
    "Arabic": "ar",
    "Persian": "fa",
    "Urdu": "ur",
}  # of the languages in the file
_CODES_BY_SCRIPT = {
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "CJK": "zh",
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "GREEK": "el",
    "HEBREW": "he",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
    "DEVANAGARI": "hi",
    "BENGALI": "bn",
    "TAMIL": "ta",
}  # of scripts that have one language, or one that is far more common than the others
_NAMES_BY_SCRIPT_CODE = {
    "en": "English",
    "ja": "Japanese",
    "ko": "Korean",
    "zh": "Chinese",
    "th": "Thai",
    "lo": "Lao",
    "km": "Khmer",
    "my": "Burmese",
    "el": "Greek",
    "he": "Hebrew",
    "hy": "Armenian",
    "ka": "Georgian",
    "hi": "Hindi",
    "bn": "Bengali",
    "ta": "Tamil",
}
LANGUAGE_NAMES = {code: name for name, code in _CODES.items()} | _NAMES_BY_SCRIPT_CODE  # all that can be recognised
UNKNOWN_LANGUAGE = "und"  # BCP 47's code for a language that is not known
MIN_KANA_SHARE = 0.05  # of the characters of a Japanese text; Chinese texts have almost none
LETTERS_PER_WORD = 2  # in a script without gaps, so that its share of a text can be compared
_CODE_OR_FORMULA = re.compile(r"`[^`\n]*`|\$[^$]*\$")
_ALSO_ENGLISH = frozenset(
    "die do go id is la me no of on op or per set son sub to un van was we".split()
)  # are English words too


def is_english(texts: Iterable[str]) -> bool:
    """Whether texts are English: most words are in Latin script, and few are function words of another language. Code
    does not count. Texts without words, and in languages that the file does not list, count as English."""
    counts = [_count_words(text) for text in texts]
    words, english_little, foreign_little, other_script = (
        (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0, 0)
    )
    return other_script * 2 <= words and (
        foreign_little < max(MIN_FOREIGN_WORDS, MIN_FOREIGN_SHARE * words)
        or foreign_little <= MIN_FOREIGN_RATIO * english_little
    )


def main_code(language: str) -> str:
    """The code of a language without region and script: `de` of `de-AT`, `no` of both written forms of Norwegian."""
    code = language.lower().replace("_", "-").partition("-")[0]
    return "no" if code in ("nb", "nn") else code


def function_words_of(language: str) -> frozenset[str]:
    """The function words of a language in the file; none for English, which has a longer list of its own."""
    return _little_words().get(LANGUAGE_NAMES.get(main_code(language), ""), frozenset())


@lru_cache(maxsize=50_000)
def stem_in(language: str, word: str) -> str:
    """The stem of a word in lower case, by the stemmer of a language; by the English one if it has none."""
    name = LANGUAGE_NAMES.get(main_code(language), "").lower()
    return stem(word) if name == "english" or name not in _stemmed_languages() else _stemmer(name)(word)


@cache
def _stemmed_languages() -> frozenset[str]:
    return frozenset(snowballstemmer.algorithms())


@cache
def _stemmer(name: str) -> Callable[[str], str]:
    stem_word: Callable[[str], str] = snowballstemmer.stemmer(name).stemWord
    return stem_word


def noticed_language(texts: Sequence[str]) -> str | None:
    """The code of the language of these texts; None for a language that is not recognised."""
    if is_english(texts):
        return "en"
    if (code := _language_of_script(texts)) is not None:
        return code
    counts: Counter[str] = Counter()
    for text in texts:
        words = Counter(_prose_words(text))
        for name, vocabulary in _little_words().items():
            counts[name] += sum(words[word] for word in vocabulary)
    [(name, count), (_, next_count)] = counts.most_common(2)
    return _CODES[name] if count > next_count else None


def _language_of_script(texts: Sequence[str]) -> str | None:
    """The language of texts that are mostly in a script of one language."""
    counts = Counter(_script(letter) for text in texts for word in _prose_words(text) for letter in word)
    kana = counts["HIRAGANA"] + counts["KATAKANA"]
    if kana > MIN_KANA_SHARE * (kana + counts["CJK"]):
        counts["HIRAGANA"] += counts.pop("CJK", 0)
    latin = counts.pop("LATIN", 0)
    [(script, count)] = counts.most_common(1) or [("", 0)]
    return _CODES_BY_SCRIPT.get(script) if count * LETTERS_PER_WORD > latin else None


@lru_cache(maxsize=10_000)
def _script(letter: str) -> str:
    """The script of a letter: the first word of its name in Unicode."""
    return unicodedata.name(letter, "").partition(" ")[0]


@lru_cache(maxsize=256)  # many questions need the same passages
def _count_words(text: str) -> tuple[int, int, int, int]:
    """The numbers of all words, English function words, foreign function words, and words in another script."""
    words = _prose_words(text)
    english_little, foreign_little = (
        sum(word in vocabulary for word in words) for vocabulary in (FUNCTION_WORDS, foreign_function_words())
    )
    return (
        len(words),
        english_little,
        foreign_little,
        sum(not any(letter.isascii() for letter in word) for word in words),
    )


def _prose_words(text: str) -> list[str]:
    """The words of a text in lower case, without code and formulas."""
    prose = "\n".join(block.text for block in blocks_of(text) if block.kind not in ("code", "formula"))
    spaced = UNSPACED_RUN.sub(lambda run: f" {_every_two(run[0])} ", _CODE_OR_FORMULA.sub(" ", prose).lower())
    return [word for word in letters_of(spaced) if len(word) > 1]


def _every_two(run: str) -> str:
    """A run of a script without gaps, cut into pieces as long as words."""
    return " ".join(run[start : start + LETTERS_PER_WORD] for start in range(0, len(run), LETTERS_PER_WORD))


@cache
def _little_words() -> dict[str, frozenset[str]]:
    """The function words of other languages, by the names of the languages."""
    lines = LITTLE_WORDS_FILE.read_text(encoding="utf-8").splitlines()
    return {name: frozenset(words.split()) for name, _, words in (line.partition(":") for line in lines)}


@cache
def foreign_function_words() -> frozenset[str]:
    """Function words of other languages, without those that also occur in English text or code."""
    return frozenset().union(*_little_words().values()) - FUNCTION_WORDS - _ALSO_ENGLISH
