"""The pages on which a book speaks of itself: the overview of its root, its introduction or preface. They say whom it
is for, who wrote it, what to know before and where to start."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lectern.answering.book_parts import BookParts
from lectern.answering.book_questions import BookTopic
from lectern.answering.lesson_openings import Excerpt, passages_about
from lectern.domain.evidence import Hit
from lectern.domain.outline import OutlineLesson

MAX_FRONT_PAGES = 5


def _words(*alternatives: str, whole: bool = False) -> re.Pattern[str]:
    joined = "|".join(alternatives)
    return re.compile(rf"(?:{joined})\W*" if whole else rf"\b(?:{joined})\b", re.IGNORECASE)


_FRONT_FILES = ("index", "readme", "_index", "introduction", "intro", "preface", "overview", "home", "welcome", "about")
_FRONT_TITLE = _words(
    "introduction|preface|foreword|prologue|overview|welcome|home",
    r"about(?: (?:this|the) \w+)?",
    "read ?me(?: first)?",
    r"(?:who|how|what) .*\b(?:book|guide|course|handbook|documentation)\b.*",
    "authors?|contributors|credits|acknowledge?ments",
    "einleitung|einführung|vorwort|überblick",
    whole=True,
)
_STARTING_TITLE = _words(
    r"install(?:ation|ing)?|set(?:ting)?[ -]?up|prerequisites",
    "get(?:ting)? started|quick[ -]?start|first steps|start here",
    "erste schritte|einrichtung",
)
_BOOK = (
    r"(?:book|guide|handbook|manual|course|curriculum|training|workshop|lesson|textbook|documentation|docs|site|tutorial"
    r"|text)"
)
_READERS = (
    r"(?:people|anyone|anybody|everyone|everybody|those|you|(?:\w+ ){0,2}(?:developers|engineers|programmers|beginners"
    r"|students|readers|users|newcomers|learners|professionals))"
)
SPEAKS_OF_BOOK = rf"\b(?:this|our|the) (?:\w+ )?{_BOOK}\b|\bdiese[rs]? (?:handbuch|buch|kurs|leitfaden)\b"
# Words of a heading, and words of a sentence, that tell what a passage says of the book.
_SIGNS: dict[BookTopic, tuple[re.Pattern[str], re.Pattern[str]]] = {
    "author": (
        _words(r"^(?:the |about the )?(?:authors?|contributors|credits|maintainers)$", "who (?:wrote|made|maintains)"),
        _words(
            r"(?:written|authored|maintained|created|developed|edited|compiled) (?:and \w+ )?by",
            "(?:the|an?|our|its) (?:original |lead |main )?authors? (?:is|are|of)",
            "geschrieben von",
        ),
    ),
    "audience": (
        _words("audience|for whom|target readers?|zielgruppe", r"who .*\b(?:is|for|read)", "is this .* for (?:you|me)"),
        _words(
            rf"(?:{_BOOK}|it) (?:is|was) (?:\w+ )?(?:(?:written|meant|intended|aimed|designed|made) )?for {_READERS}",
            rf"(?:written|meant|intended|suitable|designed|ideal|perfect) for {_READERS}",
            "(?:aimed|targeted|directed|geared) (?:at|towards?)|caters? (?:to|towards?|for)",
            "(?:intended|target) (?:audience|readers?)|starting point for",
            "(?:any|every)(?:one|body) (?:who|with|curious|interested)",
            "richtet sich an|ist für",
        ),
    ),
    "prerequisites": (
        _words(r"prerequisites?|requirements|assum\w+|before you (?:start|begin)|what .* (?:need|know)"),
        _words(
            r"prerequisites?|assum(?:es?|ed|ing)|familiar(?:ity)? with|comfortable (?:with|using)",
            "should (?:already )?(?:know|be (?:familiar|comfortable))",
            "(?:basic|prior|previous|working) (?:knowledge|experience)",
        ),
    ),
    "start": (
        _words(
            "where .* (?:start|begin)|how to (?:use|read) (?:this|the)",
            "getting started|start here|reading order|first steps",
        ),
        _words(
            "(?:start|begin|starting|beginning) (?:with|by reading|from|here)|new to",
            r"read (?:\S+ ){0,6}first|recommend (?:starting|beginning|reading)|(?:good|best) place to (?:start|begin)",
            r"(?:beginne|starte)(?:n sie)? mit",
        ),
    ),
    "organisation": (
        _words(
            r"how .* (?:organi[sz]ed|structured)|(?:structure|organi[sz]ation) of",
            "(?:book|course) (?:structure|outline|organi[sz]ation)",
        ),
        _words(
            rf"(?:{_BOOK}|it) (?:is|are) (?:\w+ )?(?:organi[sz]ed|divided|structured|split|arranged|broken)",
            rf"{_BOOK} (?:has|consists of|contains) (?:\w+ ){{1,4}}(?:parts|chapters|modules|units|sections)",
        ),
    ),
    "length": (
        _words("how long|duration|time commitment"),
        _words(
            rf"{_BOOK} takes (?:about|around|roughly|\d)",
            r"\d+[- ](?:hours?|weeks?|days?) (?:course|to (?:read|finish))",
        ),
    ),
}


def front_pages(book: BookParts) -> list[OutlineLesson]:
    """The pages that may say what the book is: the overview of its root, then introductions and prefaces, then pages
    such as "Getting started". The page of a book of one page is its front page."""
    depth = min((page.source_file.count("/") for page in book.pages), default=0)
    root = [page for page in book.pages if page.source_file.count("/") == depth and file_stem(page) in _FRONT_FILES]
    root.sort(key=lambda page: _FRONT_FILES.index(file_stem(page)))
    titled = [page for page in book.pages if _FRONT_TITLE.fullmatch(page.title)]
    pages = {page.parent_doc_id: page for page in (*root, *titled, *starting_pages(book))}
    return list(pages.values())[:MAX_FRONT_PAGES] or (book.pages if len(book.pages) == 1 else [])


def starting_pages(book: BookParts) -> list[OutlineLesson]:
    """Pages such as "Installation" and "Getting started", those of a part with such a title first."""
    pages = [*pages_for_the_beginning(book), *(page for page in book.pages if _STARTING_TITLE.match(page.title))]
    return list({page.parent_doc_id: page for page in pages}.values())


def pages_for_the_beginning(book: BookParts) -> list[OutlineLesson]:
    """The pages of the parts that the author calls "Getting started", "Installation" or the like."""
    parts = [part for part in (*book.modules, *book.chapters) if _STARTING_TITLE.fullmatch(part.title)]
    return [page for part in parts for page in part.lessons]


def file_stem(page: OutlineLesson) -> str:
    """The name of a page's file, without its suffix, in lower case."""
    return page.source_file.rpartition("/")[2].rpartition(".")[0].lower()


def said_of_book(topic: BookTopic, hits: Sequence[Hit]) -> list[Excerpt]:
    """What a page says of the book's authors, readers, order and so on."""
    heading, words = _SIGNS[topic]
    return passages_about(hits, heading, words)
