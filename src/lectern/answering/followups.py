"""A follow-up, made to stand alone. Without a model this is done by rules: a question that leans on the talk before it
("tell me more", "and in Python?", "why does it do that?") keeps its own words and says in brackets what the talk is
about. Words are carried, not whole questions: those would drown what is asked now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from lectern.domain.replies import Exchange
from lectern.domain.scope import QUERY_LENGTH
from lectern.text.everyday import telling
from lectern.text.words import FUNCTION_WORDS, stems, telling_stems

TURNS = 2  # questions that words are taken from: one may lean itself, and three lead away from what is asked (measured)
CARRIED = 6  # words that are taken along, the most telling; more drown what is asked now
SHORT = 5  # words: a question this short rarely says all it means
LITTLE = (
    1.5  # what the words of a question tell in all, where it names no subject; everyday words tell 0.3, rare ones 1
)
RARE = 0.9  # what a word tells that few texts have
NAMING = 0.5  # what the most telling word of a subject tells at least
ENOUGH = 2.5  # the same of a question that is whole however it begins, and whatever "one" or "more" stands in it
_POINTS_BACK = re.compile(
    r"\b(?:it|its|it's|they|them|their|theirs|this|these|those|he|she|him|her|his|hers|former|latter|previous|above)\b",
    re.IGNORECASE,
)
_MAY_POINT_BACK = re.compile(
    r"\b(?:that|there|then|such|same|one|ones|else|both|either|another|other|others|more|again|instead|too|also|yes|no)\b"
    r"|^\W*(?:why|how|when|where|can you|could you)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"^\W*(?:and|but|or|so|also|then|what about|how about|what if|why not|tell me more|more|go on|continue|elaborate|"
    r"explain (?:more|further|that|it)|give (?:me )?(?:an? )?(?:another )?examples?"
    r"|(?:an? )?examples?|such as|like what|"
    r"in what way|how so|really|which one|are you sure"
    r"|(?:\w+\W+)?i meant?)\b",  # "Sorry, I meant …" mends the question before it
    re.IGNORECASE,
)
_ASKS_WHAT = re.compile(
    r"^\W*(?:what|who)(?:'s|\s+(?:is|are|was|were))\s+(?P<new>an?\s+)?(?!the\b|your\b|some\b|other\b|another\b|my\b)(?P<term>\w.*)$",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[\w'.+#/-]*\w")
_JOINS = re.compile(r"^\W*(?:(?:and|but|so|ok|okay|now|then)\b\W*)+", re.IGNORECASE)
_THING = (
    r"(?:an?|the)?\s*(?!(?:in|on|for|with|without|if|when|why|how|who|what|where|which|does|do|is|are|can|to|by)\b)"
)
_AND_THAT = re.compile(
    rf"^\W*(?:and|or|what about|how about)\s+(?P<thing>{_THING}[\w`./-]+(?:\s+[\w`./-]+){{0,2}})\W*$", re.IGNORECASE
)
_WHAT_IS = re.compile(
    r"^\W*(?P<asks>what(?:'s|\s+(?:is|are)))\s+(?:an?\s+|the\s+)?(?P<thing>[\w`./-]+(?:\s+[\w`./-]+){0,2})\W*$",
    re.IGNORECASE,
)


def leans(question: str) -> bool:
    """Whether a question needs the talk before it to be understood: it goes on, points back or names no subject."""
    words = _WORDS.findall(question)
    if _GOES_ON.match(question) or _POINTS_BACK.search(question):
        return True
    if _names_its_subject(question):
        return False
    if len(words) <= SHORT:
        return True
    told = sum(telling(stem) for stem in stems(" ".join(word for word in words if _tells(word))))
    return told < (ENOUGH if _MAY_POINT_BACK.search(question) else LITTLE)


def _names_its_subject(question: str) -> bool:
    """Whether a question says what it is about, however short: `What is a URDF?`, `What is photosynthesis?`. One with a
    definite article (`What is the population?`) means something that was named before."""
    asked = _ASKS_WHAT.match(question)
    if asked is None:
        return False
    least = 0.0 if asked["new"] else NAMING  # `a service` is named here for the first time
    return any(telling(stem) >= least for stem in telling_stems(asked["term"]))


def own_words(question: str) -> set[str]:
    """The stems that a question brings along itself: its rare words and its names. Where none of them is found, words
    that were carried over from the talk must not answer in their place."""
    words = _WORDS.findall(question)
    named = {stem for word in words[1:] if word[:1].isupper() and _tells(word) for stem in stems(word)}
    return named | {stem for word in words if _tells(word) for stem in stems(word) if telling(stem) >= RARE}


def standalone_by_rules(question: str, history: Sequence[Exchange]) -> str:
    """The question with what it leans on in brackets behind it."""
    if not history or not leans(question):
        return question
    asked = question.strip()
    alone = _JOINS.sub("", asked)
    if alone != asked and _names_its_subject(alone):
        return alone[:1].upper() + alone[1:]  # `And what is xacro?` asks nothing about what came before
    if (same := _same_of_another(asked, history[-1])) is not None:
        return same
    topic = _topic(asked, history)
    while topic and len(whole := f"{asked} (about {', '.join(topic)})") > QUERY_LENGTH[1]:
        topic.pop(0)
    return whole if topic else asked


def _same_of_another(question: str, before: Exchange) -> str | None:
    """`What is a topic?`, then `And a service?`: the same question about another thing. Only where the earlier one asks
    what something is; of any other nobody can say by rules which of its words is to be exchanged."""
    meant, asked = _AND_THAT.match(question), _WHAT_IS.match(before.standalone or before.question)
    if meant is None or asked is None or _POINTS_BACK.search(meant["thing"]):
        return None
    if not any(_tells(word) for word in _WORDS.findall(meant["thing"])):
        return None
    return f"{asked['asks']} {meant['thing']}?"


def _topic(question: str, history: Sequence[Exchange]) -> list[str]:
    """What the last questions were about and this one does not say, in their words, the earliest question's first."""
    seen = stems(question)
    told: list[list[re.Match[str]]] = []  # the latest question's words first, so that they win among equals
    for one in reversed(history[-TURNS:]):
        told.append([])
        for word in _WORDS.finditer(one.question):
            if _tells(word[0]) and not stems(word[0]) <= seen:
                seen |= stems(word[0])
                told[-1].append(word)
    kept = sorted(chain.from_iterable(told), key=lambda word: -_weight(word[0]))[:CARRIED]
    return [phrase for new in reversed(told) for phrase in _phrases([word for word in new if word in kept])]


def _phrases(words: Sequence[re.Match[str]]) -> list[str]:
    """Words that stand side by side in a text stay together, as do `quality of service`."""
    made: list[str] = []
    end = -1
    for word in words:
        between = word.string[end : word.start()].strip() if made else None
        if between is not None and between.lower() in ("", "of"):
            made[-1] = " ".join([made[-1], *between.split(), word[0]])
        else:
            made.append(word[0])
        end = word.end()
    return made


def _tells(word: str) -> bool:
    """Whether a word can say what a talk is about; a number alone cannot."""
    glue = word.lower() in FUNCTION_WORDS or word.isdigit() or _MAY_POINT_BACK.fullmatch(word)
    return not glue and bool(telling_stems(word))


def _weight(word: str) -> float:
    """How much a word tells; one of several parts (`cmd_vel`, `start-up`) as much as they do at best."""
    return max((telling(stem) for stem in stems(word)), default=0.0)
