"""Questions from the headings of a book, for a reader who does not know yet what to ask. A heading that is a question
is taken as it is. A heading that names something becomes "What is …?", with the article and the spelling that the text
below it has. Headings that every book has ("Summary"), and questions that only make sense where they are ("Why does
this work?"), are left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from lectern.domain.chunks import Chunk
from lectern.reading.headings import plain
from lectern.text.blocks import blocks_of
from lectern.text.language import foreign_function_words
from lectern.text.pieces import split_sentences
from lectern.text.plain import without_targets
from lectern.text.strings import Strings
from lectern.text.words import content_stems, stem, word_weight, words_of

HEADING_WORDS_FILE = Path(__file__).parent / "heading_words.txt"
GENERIC, REFERRING = "generic", "referring"  # words of headings in every book; words that refer to what is around them
MIN_SECTION_WORDS = 25  # below a heading; less is a stub
MAX_QUESTION_WORDS, MAX_TOPIC_WORDS = 14, 5
MIN_RARE_WEIGHT = 0.95  # of a word that says what a heading is about; "What is the idea?" has none
MIN_TOPIC_WEIGHT = 0.95  # of all words of a heading that names a topic
MAX_RARE_WORDS = 2  # that make a question better

Form = Literal["question", "how-to", "what-is", "about"]
FORMS: tuple[Form, ...] = ("question", "how-to", "what-is", "about")  # the best first

_LABEL = re.compile(
    r"^\W*(?:(?:module|chapter|lesson|part|section|unit|week|day|step|modul|kapitel|lektion|teil|abschnitt|woche|tag"
    r"|schritt)\s+(?:\d+|[IVX]+)(?:\.\d+)*[a-z]?\s*[:.–—-]\s*|\d+(?:\.\d+)*[.):]?\s+)?",
    re.IGNORECASE,
)
_HOW_TO = re.compile(r"how to (?P<topic>.+)", re.IGNORECASE)
_ASKING = re.compile(
    r"(?:what|who|why|how|when|where|which|do|does|did|is|are|can|could|should|must|may|will|would|has|have|was|wer|wen"
    r"|warum|wie|wann|wo|welche[mnrs]?|wozu|weshalb|woher|wohin|ist|sind|kann|darf|soll|muss|hat|gibt|brauche)\b",
    re.IGNORECASE,
)
_WHAT_IS = re.compile(r"(?:what (?:is|are)|was (?:ist|sind)) (?!the\b|der\b|die\b|das\b)", re.IGNORECASE)
_AROUND_TOPIC = re.compile(  # "Introduction to ROS 2", "ROS 2 Overview"
    r"^(?:(?:an )?(?:introduction to|overview of|basics of|understanding|introducing|getting started with)"
    r"|(?:einführung in|überblick über|grundlagen)(?: die| das| den| der| des)?)\s+"
    r"|\s+(?:overview|basics|fundamentals|essentials|introduction|im überblick)$",
    re.IGNORECASE,
)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_TOPIC = re.compile(r"[^\W_](?:[\w .+#'’-]*[\w+#])?")
_OPENING_ARTICLES = ("A", "An", "The")
_ARTICLES = {"en": ("a", "an", "the"), "de": ("ein", "eine")}
_SINGULAR_ENDINGS = ("ss", "us", "is", "ics")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadingQuestion:
    """A question, and the heading that it was made from."""

    text: str
    form: Form
    module: str
    parent_doc_id: str
    rare_words: int  # of the heading, at most `MAX_RARE_WORDS`

    @property
    def stands_alone(self) -> bool:
        """Whether a reader understands it without the lesson: it names two things, or asks what one thing is. "Which
        frame is meant?" does neither."""
        return self.form != "question" or self.rare_words >= MAX_RARE_WORDS or bool(_WHAT_IS.match(self.text))


def heading_questions(chunks: Iterable[Chunk], strings: Strings) -> list[HeadingQuestion]:
    """The questions from the headings of these chunks, in their order, each once."""
    questions: dict[str, HeadingQuestion] = {}
    for chunk in chunks:
        for heading, text in _sections(chunk):
            if (made := _question(heading, text, strings)) is not None:
                question = HeadingQuestion(
                    text=made[1],
                    form=made[0],
                    module=chunk.module,
                    parent_doc_id=chunk.parent_doc_id,
                    rare_words=rare_words(heading),
                )
                questions.setdefault(made[1].casefold(), question)
    return list(questions.values())


def spread(questions: Sequence[HeadingQuestion]) -> list[HeadingQuestion]:
    """The questions from each module in turn, and within a module from each lesson in turn: first those that can be
    understood without their lesson, then the best forms."""
    modules: dict[str, dict[str, list[HeadingQuestion]]] = {}
    for question in questions:
        modules.setdefault(question.module, {}).setdefault(question.parent_doc_id, []).append(question)
    by_module = [
        sorted(_in_turn([sorted(lesson, key=_rank) for lesson in lessons.values()]), key=_rank)
        for lessons in modules.values()
    ]
    return list(_in_turn(by_module))


def _in_turn(groups: Sequence[Sequence[HeadingQuestion]]) -> Iterator[HeadingQuestion]:
    return (question for row in zip_longest(*groups) for question in row if question is not None)


def _rank(question: HeadingQuestion) -> tuple[bool, int]:
    return not question.stands_alone, FORMS.index(question.form)


def rare_words(heading: str) -> int:
    """How many words of a heading say what it is about, at most `MAX_RARE_WORDS`."""
    return min(MAX_RARE_WORDS, sum(weight >= MIN_RARE_WEIGHT for weight in _telling_weights(heading)))


def _telling_weights(heading: str) -> list[float]:
    """The weights of the words of a heading that are neither function words nor in every book's headings."""
    words = " ".join(word for word in words_of(heading.lower()) if word not in foreign_function_words())
    return [word_weight(word) for word in content_stems(words) - _generic_stems()]


def _sections(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """The headings of a chunk, each with the text below it."""
    if not chunk.sections:
        yield chunk.section_title or chunk.lesson_title, chunk.text
    for mark, following in zip_longest(chunk.sections, chunk.sections[1:]):
        yield mark.title, chunk.text[mark.at : following.at if following else None]


def _question(heading: str, text: str, strings: Strings) -> tuple[Form, str] | None:
    """The question for a heading, and its form; None if it makes none."""
    title = " ".join(_LABEL.sub("", plain(heading), count=1).split())
    words = words_of(title.lower())
    prose = _prose(text)
    if len(words_of(prose)) < MIN_SECTION_WORDS or _listed_words(REFERRING) & set(words) or ":" in title:
        return None
    if title.endswith("?"):
        fits = len(words) <= MAX_QUESTION_WORDS and rare_words(title) and _ASKING.match(title)
        return ("question", title) if fits else None
    if sum(_telling_weights(title)) < MIN_TOPIC_WEIGHT:
        return None
    if (match := _HOW_TO.fullmatch(title)) and strings.language == "en":
        return "how-to", strings("question.how_to", topic=_as_in_text(match["topic"], prose))
    topic = _AROUND_TOPIC.sub("", title)
    if len(words_of(topic)) > MAX_TOPIC_WORDS or _ASKING.match(topic) or not _TOPIC.fullmatch(topic):
        return None
    return _topic_question(_as_in_text(topic, prose), prose, strings)


def _topic_question(topic: str, text: str, strings: Strings) -> tuple[Form, str]:
    """The question what a topic is, if the text names it in the same words, else what the book says about it."""
    articles = "|".join(_ARTICLES.get(strings.language, ()))
    named = re.search(rf"(?:\b(?P<article>{articles})\s+)?(?<!\w){re.escape(topic)}(?!\w)", text, re.IGNORECASE)
    first = topic.partition(" ")[0].lower()
    if named is None or first.endswith("ing") or (strings.language != "en" and not named["article"]):
        return "about", strings("question.about", topic=topic)
    if strings.language == "en" and _is_plural(topic):
        return "what-is", strings("question.what_are", topic=topic)
    article = f"{named['article'].lower()} " if named["article"] and first not in articles.split("|") else ""
    return "what-is", strings("question.what_is", topic=article + topic)


def _is_plural(topic: str) -> bool:
    """Whether an English noun phrase is plural, by the ending of its noun."""
    noun = re.split(r" (?:of|for|in|with|on|to) ", topic, maxsplit=1)[0].rpartition(" ")[2]
    return " and " in topic or (noun.islower() and noun.endswith("s") and not noun.endswith(_SINGULAR_ENDINGS))


def _as_in_text(title: str, text: str) -> str:
    """The title with small letters where the text writes its words so: the capitals of a title mark no name. A title
    with a word that the text does not have stays as it is."""
    sentences = [words_of(sentence) for line in text.splitlines() for sentence in split_sentences(line)]
    counts = Counter(word for sentence in sentences for word in sentence[1:])  # the first word of each has a capital
    words = title.split(" ")
    words[0] = words[0].lower() if words[0] in _OPENING_ARTICLES else words[0]
    if any(word.istitle() and not counts[word] and not counts[word.lower()] for word in words):
        return " ".join(words)
    return " ".join(
        word[0].lower() + word[1:] if word.istitle() and counts[word.lower()] > counts[word] else word for word in words
    )


def _prose(text: str) -> str:
    """A text without its headings, listings, tables and inline code."""
    kinds = ("paragraph", "item")
    prose = "\n".join(without_targets(block.text) for block in blocks_of(text) if block.kind in kinds)
    return _INLINE_CODE.sub(" ", prose)


@cache
def _generic_stems() -> frozenset[str]:
    """The stems of words in headings that every book has."""
    return frozenset(map(stem, _listed_words(GENERIC)))


@cache
def _listed_words(kind: str) -> frozenset[str]:
    """The words of one kind in the file, of all languages."""
    lines = [line.partition(":") for line in HEADING_WORDS_FILE.read_text(encoding="utf-8").splitlines()]
    return frozenset(word for name, _, words in lines if name.endswith(kind) for word in words.split())
