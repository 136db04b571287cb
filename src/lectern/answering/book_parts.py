"""The parts of a book, and which of them a question names: "chapter 4", "unit three", "Part I", "the last lesson of
week 2", "the chapter on lidar". Names are compared with the titles, labels and numbers that the book itself has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lectern.domain.books import MAIN_MODULE
from lectern.domain.outline import Outline, OutlineChapter, OutlineLesson, OutlineModule
from lectern.text.words import content_stems, stems, words_of

Level = Literal["module", "chapter", "lesson"]

MAX_NAME = 200  # characters of a text that names a part
MIN_COVERAGE = 0.6  # of the words of a title that a word such as "section" is said with: it also means other things
_ALL_LEVELS: tuple[Level, ...] = ("module", "chapter", "lesson")
_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_ROMAN = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv".split()
_NUMBERS = (
    {word: number for number, word in enumerate(_UNITS)}
    | {word: number for number, word in enumerate(_ORDINALS)}
    | {word: number for number, word in enumerate(_ROMAN, start=1)}
)
# What a word for a part may stand for, the likeliest first. Books and readers use these words differently.
_LEVELS: dict[str, tuple[Level, ...]] = {
    "module": ("module", "chapter", "lesson"),
    "unit": ("module", "chapter", "lesson"),
    "part": ("module", "chapter", "lesson"),
    "week": ("module", "chapter", "lesson"),
    "day": ("lesson", "chapter", "module"),
    "section": ("module", "chapter", "lesson"),
    "chapter": ("chapter", "module", "lesson"),
    "lesson": ("lesson", "chapter", "module"),
    "page": ("lesson", "chapter", "module"),
    "lecture": ("lesson", "chapter", "module"),
    "session": ("lesson", "chapter", "module"),
    "tutorial": ("lesson", "chapter", "module"),
    "article": ("lesson", "chapter", "module"),
    "episode": ("lesson", "chapter", "module"),
    "guide": ("lesson", "chapter", "module"),
}
_LABEL_ONLY = frozenset({"week", "day", "lecture", "session", "page", "tutorial", "article", "guide", "episode"})
_CERTAIN = frozenset({"chapter", "lesson", "module"})  # these words hardly mean anything else in a question
PART = rf"(?:{'|'.join(_LEVELS)})"
_SPELT = rf"(?:{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_NUMBER = rf"(?:\d{{1,3}}(?:\.\d{{1,3}})?|{_SPELT})"
_NUMBERED = re.compile(
    rf"(?P<kind>{PART}) (?:no\.? |number |#)?(?P<number>{_NUMBER})(?![\w.-])\s*[:,–—-]?\s*(?P<rest>.*)"
)
_NTH = re.compile(
    rf"(?P<number>{'|'.join(_ORDINALS[1:])}|\d{{1,2}}(?:st|nd|rd|th)|last|final"
    rf"|opening) (?P<kind>{PART})\b(?P<rest>.*)"
)
_KIND_FIRST = re.compile(
    rf"(?P<kind>{PART}),? (?:(?:on|about|called|named|titled|covering|that (?:covers|explains|introduces)"
    r"|dealing with|which covers) |(?!of |in |for |from |that ))(?P<title>.+)"
)
_KIND_LAST = re.compile(rf"(?P<title>.+?) (?P<kind>{PART})")
_INSIDE = re.compile(r"(?:of|in|from|within|on) (?P<outer>.+)")
_LABEL = re.compile(rf"\b(?P<kind>{PART})[ _-]?(?P<number>\d{{1,3}}|{_SPELT})(?![\w.])[:.,]?", re.IGNORECASE)
_ARTICLE = re.compile(r"^(?:the|this|that|your|its|a|an)\s+", re.IGNORECASE)
_THE_BOOK = re.compile(
    r"(?:(?:the|this) (?:whole |entire )?(?:book|course|guide|handbook|manual|documentation"
    r"|docs))"
)
_QUOTE_SIGNS = str.maketrans("", "", "\"'“”„‘’«»`*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A module, chapter or lesson of a book."""

    level: Level
    number: int
    title: str
    names: tuple[str, ...]  # its title and the names of its files
    lessons: tuple[OutlineLesson, ...]
    overview: OutlineLesson | None = None  # the page of the part itself
    children: tuple[Part, ...] = ()
    around: tuple[str, ...] = ()  # the titles of the parts that it is in, and their names, the innermost last
    labels: frozenset[tuple[str, int]] = frozenset()  # ("unit", 3) for "Unit 3: Sensing", ("part", 1) for "Part I"

    @property
    def page(self) -> OutlineLesson:
        """The page that the part is cited by."""
        return self.overview or self.lessons[0]

    def holds(self, other: Part) -> bool:
        """Whether all lessons of another part are in this one."""
        ids = {lesson.parent_doc_id for lesson in self.lessons}
        return all(lesson.parent_doc_id in ids for lesson in other.lessons)


def number_of(text: str) -> int:
    """The number that digits, a word, an ordinal or a Roman numeral stand for."""
    bare = re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", text.lower())
    return int(bare) if bare.isdecimal() else _NUMBERS[bare]


class BookParts:
    """The parts of a book in the order in which they are read. Pages outside all modules come first."""

    def __init__(self, outline: Outline) -> None:
        ordered = sorted(outline.modules, key=lambda module: module.module != MAIN_MODULE)
        self._all = [_module(module) for module in ordered if any(chapter.lessons for chapter in module.chapters)]
        slugs = [module.module for module in ordered if any(chapter.lessons for chapter in module.chapters)]
        self.modules = [part for part, slug in zip(self._all, slugs, strict=True) if slug != MAIN_MODULE] or self._all
        self.has_modules = any(slug != MAIN_MODULE for slug in slugs)
        self.chapters = [part for part in _walk(self._all) if part.level == "chapter"]
        self.lessons = [part for part in _walk(self._all) if part.level == "lesson"]
        self.levels: list[Level] = [level for level in _ALL_LEVELS if self.of(level)]
        if not self.has_modules:
            self.levels.remove("module")
        self.pages = [lesson for module in self._all for lesson in module.lessons]

    def of(self, level: Level) -> list[Part]:
        """All parts of a level, in order."""
        return {"module": self.modules, "chapter": self.chapters, "lesson": self.lessons}[level]

    def level_of(self, kind: str) -> Level:
        """The level that a word such as "unit" stands for in this book."""
        return next((level for level in _LEVELS[kind] if level in self.levels), "lesson")

    def exact(self, text: str) -> Part | None:
        """The part whose title is this text, apart from articles; the text may leave out a label of the title. The
        outermost part if there are several."""
        words = content_stems(text)
        matches = [
            part for part in self._every() if words and words in (content_stems(part.title), _telling(part.title))
        ]
        return _one(matches)

    def named(self, text: str) -> list[Part]:
        """The parts that a text names. It has to consist of the name alone; several parts may have the same number."""
        if len(text) > MAX_NAME:
            return []
        bare = _ARTICLE.sub("", " ".join(text.translate(_QUOTE_SIGNS).split()).strip(" .?!").lower())
        if match := _NUMBERED.fullmatch(bare):
            return self._numbered(match)
        if match := _NTH.fullmatch(bare):
            return self._nth(match)
        for shape in (_KIND_LAST, _KIND_FIRST):
            if (match := shape.fullmatch(bare)) and (part := self._titled(match["kind"], match["title"])):
                return [part]
        return []

    def _every(self) -> list[Part]:
        modules = self.modules if self.has_modules else []
        return [*modules, *self.chapters, *self.lessons]

    def _numbered(self, match: re.Match[str]) -> list[Part]:
        kind, digits, rest = match["kind"], match["number"], match["rest"].strip()
        chapter, dot, lesson = digits.rpartition(".")
        number = number_of(lesson)
        if dot:
            inside = [part for part in self.chapters if part.number == int(chapter)]
            matches = [child for part in inside for child in part.children if child.number == number]
        else:
            matches = self._with_number(kind, number)
        if not rest:
            return matches
        if outer := _INSIDE.fullmatch(rest):
            return self._within(matches, outer["outer"], kind, number)
        words = content_stems(rest)  # "chapter 2, Worlds"
        return [part for part in matches if words and words <= stems(" ".join(part.names))]

    def _with_number(self, kind: str, number: int) -> list[Part]:
        """Parts with this label; if the book has no such labels, those that have the number by their place."""
        labelled = [part for part in self._every() if any(label == kind for label, _ in part.labels)]
        if labelled:
            return _outermost([part for part in labelled if (kind, number) in part.labels], kind)
        if kind in _LABEL_ONLY or kind == "section":
            return []
        level = self.level_of(kind)
        if level == "lesson" and kind not in ("lesson", "chapter"):
            return []  # the book has no such parts
        parts = self.of(level)
        if not any(part.number for part in parts):
            return parts[number - 1 : number] if number else []
        return [part for part in parts if part.number == number]

    def _within(self, matches: Sequence[Part], outer: str, kind: str, number: int) -> list[Part]:
        """Those of some parts that are inside another one, which is named as a part or by words of its title."""
        if _THE_BOOK.fullmatch(outer):
            return list(matches)
        if around := self.named(outer):
            inside = [part for whole in around for part in parts_inside(whole) if part.level == self.level_of(kind)]
            return [part for part in matches if any(whole.holds(part) for whole in around)] or [
                part for part in inside if part.number == number
            ]
        words = _telling(outer)
        return [part for part in matches if words and words <= stems(" ".join((*part.names, *part.around)))]

    def _nth(self, match: re.Match[str]) -> list[Part]:
        level, rest = self.level_of(match["kind"]), match["rest"].strip()
        parts = self.of(level)
        if rest:
            outer = _INSIDE.fullmatch(rest)
            around = self.named(outer["outer"]) if outer else []
            if around:
                parts = [part for whole in around for part in parts_inside(whole) if part.level == level]
            elif not outer or not _THE_BOOK.fullmatch(outer["outer"]):
                return []
        if match["number"] in ("last", "final"):
            return parts[-1:]
        number = 1 if match["number"] == "opening" else number_of(match["number"])
        return parts[number - 1 : number]

    def _titled(self, kind: str, title: str) -> Part | None:
        """The part whose title has all of these words, and few others; None if there is none, or a tie."""
        words = _telling(title)
        if not words or _THE_BOOK.search(title):
            return None
        likely = self.level_of(kind)
        for level in _LEVELS[kind]:
            if level not in self.levels:
                continue
            least = 0.0 if kind in _CERTAIN and level == likely else MIN_COVERAGE
            scored = [
                (part, _coverage(words, part)) for part in self.of(level) if level != "module" or self.has_modules
            ]
            best = max((coverage for _, coverage in scored), default=0.0)
            matches = [part for part, coverage in scored if coverage == best > least]
            if matches:
                return matches[0] if len(matches) == 1 else None
        return None


def _module(module: OutlineModule) -> Part:
    own_names = (module.title,) if module.module == MAIN_MODULE else (module.module, module.title)
    overview = next(
        (
            lesson
            for chapter in module.chapters
            if not chapter.chapter
            for lesson in chapter.lessons
            if not lesson.lesson
        ),
        None,
    )
    children: list[Part] = []
    for chapter in module.chapters:
        if chapter.chapter:
            children.append(_chapter(chapter, own_names))
        else:
            others = [lesson for lesson in chapter.lessons if lesson is not overview]
            is_alone = not others and len(module.chapters) == 1
            children += [_lesson(lesson, own_names) for lesson in (chapter.lessons if is_alone else others)]
    names = (module.title, *own_names[:-1], *((overview.title,) if overview else ()))
    return Part(
        level="module",
        number=0,
        title=module.title,
        names=names,
        labels=_labels(names),
        lessons=tuple(lesson for chapter in module.chapters for lesson in chapter.lessons),
        overview=overview,
        children=tuple(child for child in children if child.lessons),
    )


def _chapter(chapter: OutlineChapter, around: tuple[str, ...]) -> Part:
    overview = next((lesson for lesson in chapter.lessons if not lesson.lesson), None)
    others = [lesson for lesson in chapter.lessons if lesson is not overview] or list(chapter.lessons)
    names = (chapter.title, *((overview.title,) if overview else ()))
    return Part(
        level="chapter",
        number=chapter.chapter,
        title=chapter.title,
        names=names,
        labels=_labels(names),
        lessons=chapter.lessons,
        overview=overview,
        children=tuple(_lesson(lesson, (*around, chapter.title)) for lesson in others),
        around=around,
    )


def _lesson(lesson: OutlineLesson, around: tuple[str, ...]) -> Part:
    file = lesson.source_file.rpartition("/")[2].rpartition(".")[0]
    names = (lesson.title, file.replace("_", "-"))
    return Part(
        level="lesson",
        number=lesson.lesson,
        title=lesson.title,
        names=names,
        labels=_labels(names),
        lessons=(lesson,),
        overview=lesson,
        around=around,
    )


def _labels(names: Iterable[str]) -> frozenset[tuple[str, int]]:
    return frozenset(
        (match["kind"].lower(), number_of(match["number"]))
        for name in names
        for match in _LABEL.finditer(name.replace("-", " ").replace("_", " "))
    )


def parts_inside(whole: Part) -> Iterator[Part]:
    """All parts inside a part, in order."""
    yield from _walk(whole.children)


def _walk(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        yield from _walk(part.children)


def _telling(text: str) -> set[str]:
    """The stems of the words of a title or of a part of a question, without labels such as "Chapter 3:"."""
    bare = _LABEL.sub(" ", text)
    return content_stems(bare) or {word for word in words_of(bare.lower()) if word not in ("the", "a", "an", "of")}


def _coverage(words: set[str], part: Part) -> float:
    """How much of a part's name these words are; 0 if one of them is not in it."""
    shares = [len(words) / len(name_words) for name in part.names if words <= (name_words := _telling(name))]
    return max(shares, default=0.0)


def _outermost(parts: Sequence[Part], kind: str) -> list[Part]:
    """Parts of the likeliest level: the label of a chapter is also in the title of its own page."""
    for level in _LEVELS[kind] if kind in _LABEL_ONLY else _ALL_LEVELS:
        if matches := [part for part in parts if part.level == level]:
            return matches
    return []


def _one(parts: Sequence[Part]) -> Part | None:
    """The first of parts that are all inside it; None if they are different parts of the same name."""
    return parts[0] if parts and all(parts[0].holds(part) for part in parts) else None
