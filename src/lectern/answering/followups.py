"""Makes a follow-up question standalone by rules, without a model. A question that depends on the conversation ("tell
me more", "and in Python?", "why does it do that?") keeps its words and gets the topic of the conversation in brackets.
Words are added, not whole questions, which would outweigh the current one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from lectern.domain.replies import Exchange
from lectern.domain.scope import QUERY_LENGTH
from lectern.text.words import FUNCTION_WORDS, content_stems, stems, terms_of, word_weight

MAX_HISTORY_QUESTIONS = 2  # measured: one may itself be a follow-up, and three lead away from the question
MAX_TOPIC_WORDS = 6  # the most telling ones; more outweigh the current question
SHORT_QUESTION_WORDS = 5  # a question this short is rarely complete
MIN_SUBJECT_WEIGHT = 1.5  # of all words of a question that names a subject; everyday words weigh 0.3, rare ones 1
MIN_RARE_WEIGHT = 0.9  # of a word that few texts have
MIN_NAMING_WEIGHT = 0.5  # of the most telling word of a subject
MIN_WHOLE_WEIGHT = 2.5  # of all words of a question that is complete although it contains "one" or "more"
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
    r"|(?:\w+\W+)?i meant?)\b",  # "Sorry, I meant …" corrects the question before it
    re.IGNORECASE,
)
_ASKS_WHAT = re.compile(
    r"^\W*(?:what|who)(?:'s|\s+(?:is|are|was|were))\s+(?P<new>an?\s+)?(?!the\b|your\b|some\b|other\b|another\b|my\b)(?P<term>\w.*)$",
    re.IGNORECASE,
)
_JOINS = re.compile(r"^\W*(?:(?:and|but|so|ok|okay|now|then)\b\W*)+", re.IGNORECASE)
_THING = (
    r"(?:an?|the)?\s*(?!(?:in|on|for|with|without|if|when|why|how|who|what|where|which|does|do|is|are|can|to|by)\b)"
)
_AND_THING = re.compile(
    rf"^\W*(?:and|or|what about|how about)\s+(?P<thing>{_THING}[\w`./-]+(?:\s+[\w`./-]+){{0,2}})\W*$", re.IGNORECASE
)
_WHAT_IS = re.compile(
    r"^\W*(?P<asks>what(?:'s|\s+(?:is|are)))\s+(?:an?\s+|the\s+)?(?P<thing>[\w`./-]+(?:\s+[\w`./-]+){0,2})\W*$",
    re.IGNORECASE,
)


def depends_on_history(question: str) -> bool:
    """Whether a question cannot be understood alone: it continues, points back or names no subject."""
    words = [term[0] for term in terms_of(question)]
    if _GOES_ON.match(question) or _POINTS_BACK.search(question):
        return True
    if _names_its_subject(question):
        return False
    if len(words) <= SHORT_QUESTION_WORDS:
        return True
    weight = sum(word_weight(stem) for stem in stems(" ".join(word for word in words if _is_topic_word(word))))
    return weight < (MIN_WHOLE_WEIGHT if _MAY_POINT_BACK.search(question) else MIN_SUBJECT_WEIGHT)


def _names_its_subject(question: str) -> bool:
    """Whether a question says what it is about, even if it is short: `What is a URDF?`, `What is photosynthesis?`. A
    definite article (`What is the population?`) means something that was named before."""
    match = _ASKS_WHAT.match(question)
    if match is None:
        return False
    least = 0.0 if match["new"] else MIN_NAMING_WEIGHT  # `a service` is named here for the first time
    return any(word_weight(stem) >= least for stem in content_stems(match["term"]))


def distinctive_stems(question: str) -> set[str]:
    """The stems of a question's rare words and names. If no passage has any of them, a match of words that were
    added from the conversation is not enough."""
    words = [term[0] for term in terms_of(question)]
    names = {stem for word in words[1:] if word[:1].isupper() and _is_topic_word(word) for stem in stems(word)}
    return names | {
        stem for word in words if _is_topic_word(word) for stem in stems(word) if word_weight(stem) >= MIN_RARE_WEIGHT
    }


def standalone_by_rules(question: str, history: Sequence[Exchange]) -> str:
    """The question, followed by the topic of the conversation in brackets if the question depends on it."""
    if not history or not depends_on_history(question):
        return question
    text = question.strip()
    alone = _JOINS.sub("", text)
    if alone != text and _names_its_subject(alone):
        return alone[:1].upper() + alone[1:]  # `And what is xacro?` does not depend on what came before
    if (same := _same_question_about(text, history[-1])) is not None:
        return same
    topic = _topic(text, history)
    while topic and len(whole := f"{text} (about {', '.join(topic)})") > QUERY_LENGTH[1]:
        topic.pop(0)
    return whole if topic else text


def _same_question_about(question: str, before: Exchange) -> str | None:
    """`What is a topic?`, then `And a service?`: the same question about another thing. Only if the earlier question
    asks what something is: for other questions, rules cannot tell which of the words to exchange."""
    follow_up, earlier = _AND_THING.match(question), _WHAT_IS.match(before.standalone or before.question)
    if follow_up is None or earlier is None or _POINTS_BACK.search(follow_up["thing"]):
        return None
    if not any(_is_topic_word(term[0]) for term in terms_of(follow_up["thing"])):
        return None
    return f"{earlier['asks']} {follow_up['thing']}?"


def _topic(question: str, history: Sequence[Exchange]) -> list[str]:
    """The topic words of the last questions that this question does not have, the earliest question's words first. As
    long as no rare word is among them, earlier questions are read too: `And why?` was asked of what they name."""
    used_stems = stems(question)
    by_question: list[list[re.Match[str]]] = []  # the latest question first, so that its words win ties
    has_rare_word = False
    for exchange in reversed(history):
        if len(by_question) >= MAX_HISTORY_QUESTIONS and has_rare_word:
            break
        has_rare_word = has_rare_word or bool(distinctive_stems(exchange.question))
        by_question.append([])
        for word in terms_of(exchange.question):
            if _is_topic_word(word[0]) and not stems(word[0]) <= used_stems:
                used_stems |= stems(word[0])
                by_question[-1].append(word)
    top_words = sorted(chain.from_iterable(by_question), key=lambda word: -_weight(word[0]))[:MAX_TOPIC_WORDS]
    return [
        phrase for words in reversed(by_question) for phrase in _phrases([word for word in words if word in top_words])
    ]


def _phrases(words: Sequence[re.Match[str]]) -> list[str]:
    """Joins words that are side by side in a question, also across `of`: `quality of service`."""
    phrases: list[str] = []
    end = -1
    for word in words:
        between = word.string[end : word.start()].strip() if phrases else None
        if between is not None and between.lower() in ("", "of"):
            phrases[-1] = " ".join([phrases[-1], *between.split(), word[0]])
        else:
            phrases.append(word[0])
        end = word.end()
    return phrases


def _is_topic_word(word: str) -> bool:
    """Whether a word can say what a conversation is about; a number cannot."""
    glue = word.lower() in FUNCTION_WORDS or word.isdigit() or _MAY_POINT_BACK.fullmatch(word)
    return not glue and bool(content_stems(word))


def _weight(word: str) -> float:
    """How telling a word is; a word of several parts (`cmd_vel`, `start-up`) counts as its most telling part."""
    return max((word_weight(stem) for stem in stems(word)), default=0.0)
