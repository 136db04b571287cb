"""Statements that nobody wrote for this: sentences of books and texts, slightly reworded or made false; questions with
right and wrong answers; lines of lessons' summaries, of quizzes and of answers.

    PYTHONPATH=scripts python -m judge.statements WORK_FOLDER [PASSAGES]

writes `synthetic` and `harvested` (`.jsonl.gz`) into the folder, from all passages or the first PASSAGES. Needs
`../shared/data` and WordNet's data files in /usr/share/wordnet (Debian: wordnet-base). Seeded; the same at every run.
"""
# ruff: noqa: PLR2004  # shares and sizes of the recipe stand where they are used

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from judge.cases import SHARED, Stated, corpus, document_text
from judge.falsify import falsified
from judge.rows import Row
from judge.windows import passages
from row_files import write

from lectern.grounding.claims import units_of
from lectern.text.pieces import sentences_of

WORDNET = Path("/usr/share/wordnet")
FRONT = re.compile(r"^---\n.*?\n---\n", re.DOTALL)
A_PASSAGE, A_STATEMENT = 4, 2  # statements of a passage; falsehoods of a statement
MOST = 6_000  # characters of a lesson that falsehoods draw on
REWORDED = [
    tuple(pair.split("=>"))
    for pair in r"""\bin order to\b=>to;;\bdue to\b=>because of;;\bFor example, =>;;\bfor example, =>;;\butilize=>use;;
\buses?\b=>employs;;\ballows? (\w+) to\b=>lets \1;;\bmust\b=>has to;;\bcannot\b=>is unable to;;\bbegan\b=>started;;
\balso \b=>;;\bHowever, =>;;\bmany\b=>a large number of;;\bbecause\b=>since;;\bif\b=>when;;\bbut\b=>although;;
\bwas\b=>had been;;\babout\b=>approximately;;\bshows\b=>demonstrates;;\bdo not\b=>don't;;\bis not\b=>isn't;;
\blarge\b=>big;;\bneeds?\b=>requires;;\bmakes?\b=>renders""".replace(";;\n", ";;").split(";;")
]
FRONTED = re.compile(
    r"^(If|When|With|In|For|After|Before|During|Since|As|Because|While|By|On|At)\b([^,;]{6,70}),\s+(.{15,})\.$"
)
LEADS = ["According to the lesson, ", "The book says that ", "The passage states that ", "In short, ", "Note that "]


@cache
def wordnet() -> tuple[dict[str, list[str]], dict[str, set[str]]]:
    """Synonyms of words with one meaning, and opposites."""
    synonyms: dict[str, list[str]] = {}
    opposites: dict[str, set[str]] = {}
    for part in ("noun", "verb", "adj", "adv"):
        synsets: dict[str, tuple[list[str], list[list[str]]]] = {}
        for line in _lines(f"data.{part}"):
            head = line.split(" | ")[0].split()
            end = 4 + 2 * int(head[3], 16)
            words = [word.split("(")[0].replace("_", " ").lower() for word in head[4:end:2]]
            links = [head[at : at + 4] for at in range(end + 1, end + 1 + 4 * int(head[end]), 4)]
            synsets[head[0]] = words, links
        for words, links in synsets.values():
            for sign, offset, _, places in links:
                if sign == "!" and offset in synsets:
                    own_place, theirs = divmod(int(places, 16), 256)  # the word meant in each
                    opposites.setdefault(words[own_place - 1], set()).add(synsets[offset][0][theirs - 1])
        for line in _lines(f"index.{part}"):
            fields = line.split()
            lemma, meanings = fields[0].replace("_", " "), fields[6 + int(fields[3]) :]
            synonyms_of = [word for word in synsets[meanings[0]][0] if word != lemma]
            if len(meanings) == 1 and synonyms_of and " " not in lemma:
                synonyms.setdefault(lemma, [word for word in synonyms_of if word.isascii()])
    return {
        word: word_synonyms for word, word_synonyms in synonyms.items() if word_synonyms and len(word) > 3
    }, opposites


def _lines(name: str) -> list[str]:
    lines = (WORDNET / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("  ")]


def reworded(text: str, r: Random) -> str:
    """The same, said a little differently: now and then each of these."""
    if r.random() < 0.4:
        text = re.sub(r"\s*\([^()]*\)", "", text)
    if r.random() < 0.3:
        text = re.sub(r"\b(simply|also|therefore|however|already|still|really|quite|very|then|even)\s+", "", text)
    if r.random() < 0.4:
        for old, new in r.sample(REWORDED, 8):
            text = re.sub(old, new, text, count=1)
    if r.random() < 0.3 and (turned := FRONTED.match(text)):
        text = f"{turned[3][:1].upper()}{turned[3][1:]} {turned[1].lower()}{turned[2]}."
    if r.random() < 0.35:
        text = _shortened(text, r)
    inner = re.match(r"^(.{10,}), ([^,]{5,50}), (.{10,})$", text)
    if r.random() < 0.3 and inner and not re.search(r"\b(and|or)\b", inner[3][:4]):
        text = f"{inner[1]} {inner[3]}"
    if r.random() < 0.3:
        text = re.sub(r"(?<![\w`/-])[a-z]{4,}(?![\w`/-])", lambda word: _synonym(word[0], r), text)
    if r.random() < 0.12:
        text = r.choice(LEADS) + text[:1].lower() + text[1:]
    return text


def _shortened(text: str, r: Random) -> str:
    parts = re.split(r"(, (?:and|but|which|where|while|so|who)\b|; )", text)
    if len(parts) == 1:
        return text
    if r.random() < 0.6:
        return parts[0].rstrip(".") + "."
    alone = (parts[1].strip(", ") in {"and", "but"} or parts[1] == "; ") and len(parts[2].split()) > A_PASSAGE
    return parts[2].strip().capitalize() if alone else text


def _synonym(word: str, r: Random) -> str:
    synonyms, _ = wordnet()
    if r.random() > 0.15:
        return word
    if word in synonyms:
        return r.choice(synonyms[word])
    return r.choice(synonyms[word[:-1]]) + "s" if word.endswith("s") and word[:-1] in synonyms else word


def falsehoods(text: str, passage: str, r: Random) -> list[tuple[str, str]]:
    """Up to two ways of making it false, of different kinds."""
    variants = falsified(text, passage, r.randrange(10**9))
    _, opposites = wordnet()
    if words := [word for word in re.finditer(r"\b[a-z]{3,}\b", text) if word[0] in opposites]:
        word = r.choice(words)
        new = r.choice(sorted(opposites[word[0]]))
        variants.append(("opposite", text[: word.start()] + new + text[word.end() :]))
    kinds = list(dict.fromkeys(kind for kind, _ in variants))
    r.shuffle(kinds)
    return [(kind, r.choice([variant for of, variant in variants if of == kind])) for kind in kinds[:A_STATEMENT]]


def about(passage: str, seed: int) -> Iterator[Stated]:
    """Sentences and rows of a passage, each followed by its falsehoods."""
    r = Random(seed)
    sentences = [sentence for sentence in sentences_of(passage) if 6 <= len(sentence.split()) <= 45]
    sentences += [unit.text for unit in units_of(passage) if unit.kind == "row" and 4 <= len(unit.text.split()) <= 40]
    r.shuffle(sentences)
    for sentence in sentences[:A_PASSAGE]:
        text = reworded(sentence, r) if r.random() < 0.85 else sentence
        text = sentence if len(text.split()) < A_PASSAGE else text
        yield from _with_falsehoods(text, passage, "same", r)


def _with_falsehoods(text: str, passage: str, kind: str, r: Random) -> Iterator[Stated]:
    yield Stated(text, (passage,), kind)
    for false_kind, false in falsehoods(text, passage[:MOST], r):
        yield Stated(false, (passage,), false_kind, true=False, origin=text)


def answered() -> Iterator[Stated]:
    """Questions of two sets as statements, with an answer or with something else of the same sort from the text."""
    r = Random(5)
    for name in ("qa-squad2", "qa-nq"):
        texts, queries = corpus(name), _queries(name)
        of: dict[str, list[dict[str, Any]]] = {}
        for query in queries:
            if query["answerable"]:
                of.setdefault(query["gold"][0]["doc"], []).append(query)
        for query in queries:
            place = query["gold"][0]["doc"]
            if place not in texts:
                continue
            for answer, true, kind in _answers(query, texts[place], of.get(place, []), r):
                yield Stated(_statement_of(query["text"], answer), (texts[place],), kind, true=true)


def _answers(
    query: dict[str, Any], text: str, here: list[dict[str, Any]], r: Random
) -> Iterator[tuple[str, bool, str]]:
    if not query["answerable"]:
        if here:
            yield min(r.choice(here)["answers"], key=len), False, "qa-un"
        return
    answer = min(query["answers"], key=len)
    yield answer, True, "qa"
    question_text, sort = query["text"].lower(), _sort(answer)
    other_answers = [
        answer for other_query in here if other_query is not query for answer in other_query["answers"][:1]
    ]
    other_answers = [
        candidate
        for candidate in other_answers
        if candidate.lower() not in question_text and candidate not in query["answers"] and _sort(candidate) == sort
    ]
    names_found = re.findall(r"(?<!^)(?<![.] )\b[A-Z][a-z]+(?: [A-Z][a-z]+)*|\b\d[\d,.]*\b", text)
    names = [
        candidate
        for candidate in names_found
        if candidate not in answer and answer not in candidate and candidate.lower() not in question_text
    ]
    names = [name for name in names if _sort(name) == sort]
    if options := other_answers if (r.random() < 0.5 and other_answers) or not names else names:
        yield r.choice(options), False, "qa-bad"


def _sort(text: str) -> str:
    return "number" if re.search(r"\d", text) else "name" if text[:1].isupper() else "word"


def _statement_of(question: str, answer: str) -> str:
    """A question and its answer as one statement, where that is easily said."""
    question_text = question.rstrip("?. ")
    verbs = r"(?=(?:was|is|were|are|has|had|led|did(?!\w)|\w+ed|\w+s)\b)(?!(?:did|does|do|is|was|are|were)\b)"
    subject = re.match(rf"^(who|what|which \w+|what \w+|how many \w+)\s+{verbs}(.*)$", question_text, re.IGNORECASE)
    if subject:
        return f"{answer[:1].upper()}{answer[1:]} {subject[2]}."
    open_end = re.compile(r"\b(what|who|whom|which|when|where)$", re.IGNORECASE)
    return (
        open_end.sub(lambda _: answer, question_text) + "."
        if open_end.search(question_text)
        else f"{question_text}? {answer}."
    )


def harvested() -> Iterator[Stated]:
    """Summaries of lessons, quizzes and long answers."""
    r = Random(9)
    yield from _summaries(r)
    for name, root in (("qa-agentfactory", "book-agentfactory/docs"), ("qa-curriculum", "book-curriculum/modules")):
        for query in _queries(name):
            file = SHARED / root / query["gold"][0]["doc"] if query["answerable"] else SHARED / "none"
            if file.exists() and not (query.get("meta") or {}).get("noisy_gold"):
                yield from _quiz(query, _untold(_body(file)) if name == "qa-curriculum" else _body(file), r)
    texts = corpus("qa-clapnq")
    for query in _queries("qa-clapnq"):
        if query["answerable"] and query["gold"][0]["doc"] in texts:
            for text in [sentence for answer in query["answers"][:2] for sentence in _sized(sentences_of(answer)[:3])]:
                yield from _with_falsehoods(text, texts[query["gold"][0]["doc"]], "answer", r)


def _summaries(r: Random) -> Iterator[Stated]:
    for file in sorted((SHARED / "book-agentfactory" / "docs").rglob("*.summary.md")):
        lesson = file.with_name(file.name.replace(".summary.md", ".md"))
        if lesson.exists():
            lines = [line for line in _body(file).splitlines() if not line.startswith("#")]
            sentences = [
                re.sub(r"^[-*\d.]+\s+", "", sentence).strip() for line in lines for sentence in sentences_of(line)
            ]
            sentences = [
                sentence
                for sentence in _sized(sentences)
                if not sentence.startswith(("Ask", "Request", "Prompt", "Use AI"))
            ]
            for text in sentences[:14]:
                yield from _with_falsehoods(text, _body(lesson), "summary", r)


def _quiz(query: dict[str, Any], lesson: str, r: Random) -> Iterator[Stated]:
    question_text, options = query["text"].strip(), query.get("options") or []

    def statement_of(option: str) -> str:
        return (
            re.sub(r"_{2,}", lambda _: option, question_text)
            if "__" in question_text
            else f"{question_text.rstrip(':')} {option}"
        )

    for answer in filter(None, query["answers"][:1]):
        if len(answer.split()) < 45:
            yield Stated(statement_of(answer), (lesson,), "mcq")
        if options and len(answer.split()) >= 7:
            yield Stated(answer, (lesson,), "option")
    wrong = [option for place, option in enumerate(options) if option and place != query.get("correct")]
    r.shuffle(wrong)
    if not re.search(r"\b(NOT|EXCEPT|not|except)\b", question_text):
        yield from (Stated(statement_of(option), (lesson,), "mcq-wrong", true=False) for option in wrong[:1])
        long = [option for option in wrong[1:2] if len(option.split()) >= 7]
        yield from (Stated(option, (lesson,), "option-wrong", true=False) for option in long)
    for text in _sized(sentences_of(query.get("explanation") or ""), 8)[:2]:
        yield from _with_falsehoods(text, lesson, "explain", r)


def _sized(texts: Iterator[str] | list[str] | tuple[str, ...], least: int = 7) -> list[str]:
    return [text for text in texts if least <= len(text.split()) <= 40]


def _untold(lesson: str) -> str:
    """A lesson without the quiz below it, which has the answers."""
    quiz = re.search(r"(?im)^#+.*(quiz|check your|self-check|questions|exercises|assessment|answers)", lesson)
    return lesson[: quiz.start()] if quiz and quiz.start() > 800 else lesson


def _body(file: Path) -> str:
    return FRONT.sub("", document_text(file).replace("\r\n", "\n"), count=1)


def _queries(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (SHARED / name / "queries.jsonl").read_text(encoding="utf-8").splitlines()]


def synthetic(most: int | None) -> Iterator[Row]:
    """Statements about passages, then questions."""
    texts = list(passages())
    Random(1).shuffle(texts)
    for seed, text in enumerate(texts[:most]):
        yield from (statement.row(teacher_words=0) for statement in about(text, seed))
    yield from (statement.row(teacher_words=0) for statement in list(answered())[:most])


def main() -> None:
    """Write both files."""
    folder = Path(sys.argv[1])
    most = int(sys.argv[2]) if len(sys.argv) > 2 else None
    print("synthetic", write(folder / "synthetic.jsonl.gz", synthetic(most)))
    kept = (statement for number, statement in enumerate(harvested()) if most is None or number < most)
    harvested_rows = (statement.row(teacher_words=0) for statement in kept)
    print("harvested", write(folder / "harvested.jsonl.gz", harvested_rows))


if __name__ == "__main__":
    main()
