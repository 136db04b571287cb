"""Recognises questions about the book itself: what it is about, who wrote it and for whom, where to start, how it is
organised, how long it is, and what one of its parts covers. A question, or one of its clauses, has to have one of these
shapes from its first word to its last, apart from courtesies, because nearly the same words ask for something that the
book explains: "where do I start?" is about the book, "where do I start the server?" is not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from lectern.answering.book_parts import PART
from lectern.answering.outline_answers import BOOK

BookTopic = Literal["about", "author", "audience", "prerequisites", "start", "organisation", "length"]

MAX_QUESTION = 240  # characters; a longer text tells a story
MIN_TITLE_WORDS = 2  # of a title that may stand for "the book": one word is rather the name of what it describes

_OPENING = re.compile(
    r"^(?:(?:hi|hello|hey|ok|okay|so|well|please|thanks|and|but|now|sorry|excuse me)\b[ ,!.]*(?:there\b[ ,!.]*)?"
    r"|i(?:'m| am) (?:new|a beginner|a newcomer|just starting|completely new)[^,.?!;:]*[,.!;:-]+\s*"
    r"|(?:can|could|would|will) (?:you|u) (?:please |kindly |quickly |briefly )?"
    r"|(?:i(?:'d| would) like|i want|i need) (?:you )?to (?:know |see )?|do you know "
    r"|tell (?:me|us) (?!about|something|more|a bit)|just |briefly |quickly |in short,? |i wonder )+"
)
_CLOSING = re.compile(
    r"(?:[ ,]+(?:please|for me|to me|in short|briefly|in brief|exactly|really|actually|then|again|thanks|thank you"
    r"|in (?:a few|two|three|one|simple|plain|your own) (?:sentences?|words?|paragraphs?|lines?|terms)|overall|here"
    r"|in (?:the|this) (?:book|course|guide|handbook|documentation|docs)|at all|as a (?:beginner|newcomer)"
    r"|if i(?:'m| am) (?:new|a beginner)[^?]*))+$"
)
_FULL_STOP = re.compile(r"[.!?] ")
_CLAUSE_GAP = re.compile(r"[.!?;:] |, (?:and |but |so )?| (?:and|but) ")
_JOINT = re.compile(r" and |[?!] ")
_CONDITION = re.compile(r" (?:if|when|because|since|before|in order to|so that) (?:i|we|you|it|my)\b.*$")
_NEWCOMER = re.compile(
    r"\b(?:new|newcomer|beginner|novice|never|first time|no (?:prior )?(?:experience|knowledge|idea))\b"
)
_SHORT_FORMS = ((re.compile(r"\b(what|who|where|how)'?s\b"), r"\1 is"), (re.compile(r"\bi'll\b"), "i will"))

_WHO = r"(?:i|we|you|one|a (?:reader|beginner|newcomer|student)|beginners|newcomers|readers|someone (?:new|like me))"
_SHOULD = r"(?:do|should|can|could|must|shall|will|would|ought|might)"
_WILL_I = rf"(?:{_SHOULD}|am|are) {_WHO}(?: going to)?"
_COVER = (
    r"(?:cover|teach|contain|talk about|deal with|discuss|explain|describe|include|treat|introduce|offer|address"
    r"|say|tell|go over|go through|focus on)(?: (?:me|us))?"
)
_SUMMARY = (
    r"(?:(?:give|show|write|provide|make|get|offer)(?: me| us)? )?(?:an? |the )?"
    r"(?:(?:short|brief|quick|concise|general|high-level|one-paragraph) )*"
    r"(?:summary|overview|description|synopsis|gist|recap|abstract|tl;?dr|outline)"
)
_SUMMARISE = r"(?:summari[sz]e|sum up|recap|give me the gist of)"
_TELL_ABOUT = r"tell (?:me|us) (?:something |more |a bit )?about"
_READ = r"(?:read|look at|study|open|go through|do|take|learn|work through)"
_PAGES = (
    r"(?:pages?|lessons?|chapters?|parts?|tutorials?|sections?|modules?|units?|guides?|articles?|docs|documents?"
    r"|ones?)"
)
_LEARN = r"(?:learn|find|get|study|read about|discover|take away|be able to do|be taught)"
_FROM = r"(?:from|in|with|by reading|out of|after(?: reading)?)"
_START = r"(?:start|begin)"
_ORGANISED = r"(?:organi[sz]ed|structured|divided|arranged|laid out|set up|built|ordered|sequenced)(?: up)?"
_BOOK_OR_IT = rf"(?:{BOOK}|it|this|all this|all of this)"
_THIS_BOOK = BOOK.replace("(?:this|the|your|that)", "(?:this|your)", 1)


def _shapes(*shapes: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{shape})" for shape in shapes))


_BOOK_SHAPES: dict[BookTopic, re.Pattern[str]] = {
    "about": _shapes(
        rf"what is {_BOOK_OR_IT} (?:all |mainly |mostly )?about",
        rf"what {_BOOK_OR_IT} is (?:all )?about",
        rf"what is {_THIS_BOOK}(?: for)?",
        rf"what (?:does|do|will) {BOOK} {_COVER}",
        rf"what {_WILL_I} {_LEARN} {_FROM} {BOOK}",
        r"what (?:will|can|would|am|are) (?:i|we|you)(?: going to)? learn",
        rf"(?:what|which) (?:topics|subjects|themes|areas) does {BOOK} {_COVER}",
        rf"(?:what|which) (?:topics|subjects|themes|areas) are (?:covered|discussed|treated)(?: (?:in|by) {BOOK})?",
        rf"(?:{_SUMMARISE}|describe|introduce|explain|{_TELL_ABOUT}) {BOOK}",
        rf"(?:what is (?:an? |the )?)?{_SUMMARY} of {BOOK}",
        rf"what is the (?:main |overall )?(?:topic|subject|theme|purpose|goal|aim|point|gist|idea|message) of {BOOK}",
        rf"what (?:is|are) the (?:main|key) (?:points|ideas|topics|themes|subjects) of {BOOK}",
        rf"why (?:should (?:i|we|anyone) read|was|read) {BOOK}(?: written)?",
        rf"what (?:is|are) {BOOK} (?:good |meant |intended )?for",
        rf"(?:what|which) (?:topics|subjects|themes|areas) are (?:in|part of) {BOOK}",
        rf"what (?:does|do|can|will) {BOOK} (?:help|offer|give)(?: (?:me|us|you))?(?: with)?",
        rf"give (?:me|us) {_SUMMARY}",
        r"worum geht es(?: (?:hier|in (?:diesem|dem) (?:buch|handbuch|kurs|leitfaden)))?",
        r"wovon handelt (?:dieses|das) buch",
    ),
    "author": _shapes(
        r"who (?:wrote|made|created|authored|writes|maintains|runs|publishes|published|has written|looks after"
        r"|(?:is|are) (?:(?:the people |the team )?behind|responsible for|in charge of)) "
        rf"{_BOOK_OR_IT}",
        rf"(?:is|was|are|were) {BOOK} (?:written|made|maintained|created) by .+",
        r"who (?:is|are|was|were) the (?:authors?|writers?|maintainers?|editors?|creators?|publishers?)"
        rf"(?: (?:of|behind) {_BOOK_OR_IT})?",
        rf"(?:by whom|who) (?:is|was|were) {_BOOK_OR_IT} (?:written|made|created|published|maintained)(?: by)?",
        rf"(?:what is )?the (?:name of the )?authors?(?:'s name)?(?: of {BOOK})?",
        rf"author of {BOOK}",
        r"wer hat (?:dieses|das) (?:buch|handbuch) (?:geschrieben|verfasst)",
        r"wer (?:ist|sind) (?:der|die) (?:autor(?:in|en)?|verfasser)(?: (?:dieses|des) buch(?:e?s)?)?",
    ),
    "audience": _shapes(
        rf"whom? is {_BOOK_OR_IT} (?:(?:written|meant|intended|aimed|made|designed|suitable) )?(?:for|at)",
        rf"whom? {_BOOK_OR_IT} is (?:(?:written|meant|intended|aimed|made|designed) )?(?:for|at)",
        rf"for whom is {_BOOK_OR_IT}(?: (?:written|meant|intended|made|designed))?",
        rf"who (?:should|can|needs to|ought to|would|must) (?:read|use|take|(?:benefit|profit) from) {_BOOK_OR_IT}",
        r"(?:what|who) (?:is|are) the (?:target |intended )*(?:audience|readers?|readership|target group)"
        rf"(?: (?:of|for) {_BOOK_OR_IT})?",
        rf"(?:is|are) {BOOK} (?:(?:suitable|good|right|meant|written|made|ok|useful|intended|a good fit) )?for "
        r"(?:me|someone .*|people .*"
        r"|(?:absolute |complete |total )?(?:beginners?|newcomers?|novices|experts?|professionals|students))",
        rf"whom? (?:is|are) {_BOOK_OR_IT} (?:aimed|targeted|directed) at",
        r"für wen ist (?:dieses|das) (?:buch|handbuch)(?: (?:geschrieben|gedacht|geeignet))?",
        r"an wen richtet sich (?:dieses|das) (?:buch|handbuch)",
    ),
    "prerequisites": _shapes(
        rf"what {_SHOULD} {_WHO} (?:need to |have to )?(?:already )?(?:know|understand|have) "
        rf"(?:before (?:reading|starting|beginning|taking|using)|(?:in order )?to (?:read|start|take|use)) {BOOK}",
        rf"what are the prerequisites (?:of|for|to) (?:reading |starting |taking )?{BOOK}",
        r"what (?:prior |previous |background )*(?:knowledge|experience|skills?|background) "
        rf"(?:do (?:i|we) need|is (?:needed|required|assumed|expected)) (?:for|by|to read|before reading) {BOOK}",
        rf"(?:what|which)(?: (?:prior |previous )?(?:knowledge|experience|skills?))? does {BOOK} "
        r"(?:assume|require|expect)"
        r"(?: (?:me|readers|of me|of readers)(?: to know)?)?",
        rf"(?:what are|are there|does {BOOK} have) (?:the |any )?prerequisites(?: (?:of|for|to) {BOOK})?",
        rf"what {_SHOULD} {_WHO} (?:need to |have to )?(?:already )?know (?:before|first|already)"
        rf"(?: {_WHO} {_START})?",
        rf"{_SHOULD} {_WHO} (?:need|have)(?: to have)? (?:any |some |prior |previous |special )*"
        rf"(?:knowledge|experience|skills?|background)(?: (?:of|in|with) .+?)?"
        rf"(?: (?:before|for|to) (?:reading |starting |taking |following )*(?:start|read|take|follow|{BOOK}).*)?",
        rf"{_SHOULD} {_WHO} (?:need |have )(?:to )?(?:already )?know .+ "
        rf"(?:before|first|to (?:follow|read|take|use) {BOOK})",
        rf"(?:what is|what are) the (?:requirements|prior knowledge) (?:of|for) {BOOK}",
    ),
    "start": _shapes(
        rf"where (?:{_SHOULD} {_WHO} |to |is (?:the best|a good) place to )(?:best )?{_START}"
        rf"(?: (?:reading|learning|with|in|on))*(?: {BOOK})?",
        rf"how (?:to |{_SHOULD} {_WHO} )(?:get started|{_START})(?: (?:reading|learning|with|using))*(?: {BOOK})?",
        rf"(?:which|what)(?: of)?(?: (?:the|these|those))? {_PAGES} {_SHOULD} {_WHO} (?:to )?(?:best )?"
        rf"(?:{_START}(?: with| from| at)?|{_READ} (?:first|at first|at the beginning|to start|to begin with))",
        rf"(?:which|what) {_PAGES} (?:are|is) (?:best |good |recommended )*"
        rf"(?:for (?:beginners|newcomers)|to {_START} with)",
        rf"what {_SHOULD} {_WHO} (?:{_START} (?:with|reading|learning)|(?:read|study|learn|look at) first)",
        rf"(?:what|which|where) is (?:the best|a good|the right|the) (?:place|page|lesson|chapter|way) to {_START}"
        rf"(?: (?:reading|learning|with|in))*(?: {BOOK})?",
        r"what is (?:the best|a good|the) starting (?:point|page|place)"
        rf"(?: (?:for|of|in) (?:beginners|newcomers|{BOOK}))?",
        rf"in (?:which|what) order {_SHOULD} {_WHO} (?:read|study|work through|do|take) (?:{BOOK}|the {_PAGES})",
        rf"how {_SHOULD} {_WHO} (?:read|use|work through|study|approach) {BOOK}",
        rf"where in {BOOK} {_SHOULD} {_WHO} (?:best )?{_START}",
        rf"(?:what is |which is )?the first (?:thing|page|lesson|chapter) (?:to|{_WHO} {_SHOULD}) {_READ}",
        r"(?:suggest|recommend|give me|what is) (?:an?|the)(?: best| good)? "
        r"(?:reading order|order to read (?:it|them|this) in)",
        r"(?:my )?(?:very )?first steps",
        r"wo (?:fange ich|soll ich|sollte ich|fängt man|soll man) (?:am besten )?(?:an|anfangen|beginnen)",
        r"womit (?:fange ich an|soll(?:te)? ich (?:anfangen|beginnen))",
    ),
    "organisation": _shapes(
        rf"how (?:is|are|was) (?:{BOOK}|the (?:chapters|lessons|modules|units|contents)) {_ORGANISED}",
        rf"how {BOOK} is {_ORGANISED}",
        r"(?:what is |explain |describe |show me )?the "
        rf"(?:structure|organi[sz]ation|layout|contents?|curriculum|syllabus|set-?up) of {BOOK}",
        rf"what (?:is|are) (?:in|inside|the contents of|the parts of) {BOOK}",
        rf"what are the (?:main )?(?:sections|parts|chapters)(?: (?:of|in) {BOOK})?",
        rf"(?:what|which) (?:parts|sections) does {BOOK} (?:have|contain|consist of)",
        rf"what does {BOOK} consist of",
        rf"(?:in(?:to)? )?(?:what|which) (?:parts|units|modules|sections|chapters) is {BOOK} "
        r"(?:divided|split|organi[sz]ed|broken)(?: up| down)?(?: in| into)?",
        r"wie ist (?:dieses|das) (?:buch|handbuch) (?:aufgebaut|gegliedert|strukturiert)",
    ),
    "length": _shapes(
        rf"how (?:long|big|large|thick|extensive|short) (?:is {_BOOK_OR_IT}|{BOOK} is)",
        rf"how many (?:pages|words) (?:does {BOOK} have|are (?:there )?in {BOOK}|has {BOOK}|is {BOOK})",
        rf"what is the (?:length|size|extent) of {BOOK}",
        rf"how (?:long|much time) (?:does|will|do|would) {BOOK} take(?: (?:me|us|one))?",
        rf"how much time (?:{_SHOULD}|do) {_WHO} (?:need|plan|reserve|set aside) for {BOOK}",
        r"how (?:long|much time) (?:does|will|would|do|should) (?:it|i|we) (?:take|need)(?: (?:me|us|one))?"
        rf" to (?:read|finish|work through|complete|get through|go through) {_BOOK_OR_IT}",
        r"wie lang ist (?:dieses|das) (?:buch|handbuch)",
    ),
}
_SAYS_BOOK = re.compile(rf"{BOOK}|\b{_PAGES}\b|\b(?:read|learn|organi[sz]ed|structured|prerequisites)\b")
_NAMED = rf"(?P<part>.*\b{PART}\b.*)"  # has a word such as "chapter"
_ANY = r"(?P<part>.+)"  # may also be a title alone
_TREATED = r"(?:covered|taught|discussed|explained|contained|treated|introduced|done)"
_POINTS = (
    r"(?:(?:main|key|most important|central|core) )*(?:points?|ideas?|topics?|takeaways?|lessons|messages?|concepts"
    r"|goals?|objectives?|aims?|purpose|contents?|subjects?|theme)"
)
_PART_SHAPES: tuple[tuple[BookTopic, re.Pattern[str]], ...] = (
    ("author", re.compile(rf"who (?:wrote|made|created|authored|writes|maintains|has written) {_NAMED}")),
    ("author", re.compile(rf"who (?:is|are|was|were) the (?:authors?|writers?|maintainers?) of {_NAMED}")),
    (
        "about",
        re.compile(
            rf"(?:{_SUMMARISE}|(?:what is (?:an? |the )?)?{_SUMMARY} of) (?:the {_POINTS} (?:of|in|from) )?{_ANY}"
        ),
    ),
    ("about", re.compile(rf"(?:explain|describe|introduce|outline|{_TELL_ABOUT}) {_NAMED}")),
    ("about", re.compile(rf"what (?:is|are) {_ANY} (?:all |mainly )?about")),
    ("about", re.compile(rf"what {_NAMED} is (?:all )?about")),
    ("about", re.compile(rf"what (?:does|do|will|did) {_NAMED} {_COVER}")),
    ("about", re.compile(rf"what (?:is|are)(?: {_TREATED})? in(?:side)? {_NAMED}")),
    ("about", re.compile(rf"what {_WILL_I} (?:{_LEARN}|see|do|cover|build|read) (?:{_FROM}|during) {_NAMED}")),
    ("about", re.compile(rf"what (?:happens|comes|is planned|is coming) in {_NAMED}")),
    ("about", re.compile(rf"what (?:is|are) the {_POINTS} (?:of|in|from|for) {_NAMED}")),
    ("about", re.compile(rf"(?:what|which) (?:topics|subjects|things|concepts) does {_NAMED} {_COVER}")),
    ("about", re.compile(rf"what is {_NAMED}")),
    ("about", re.compile(rf"(?:the )?(?P<part>{PART} .+)")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookQuestion:
    """What a question asks of the book, and the part that it names, if it is about a part."""

    topic: BookTopic
    part: str = ""
    part_is_title: bool = False  # no word such as "chapter" says that it is a part: only a whole title counts
    halves: tuple[BookQuestion, ...] = ()  # of a question that asks two things


def book_questions(question: str, title: str = "") -> list[BookQuestion]:
    """What a question may ask of the book, the likeliest first; empty if it asks for something else. A title of several
    words may stand for "the book"."""
    questions: list[BookQuestion] = []
    if len(question) > MAX_QUESTION:
        return questions
    for text in _wordings(question, title):
        questions += [BookQuestion(topic=topic) for topic, shape in _BOOK_SHAPES.items() if shape.fullmatch(text)]
        for topic, shape in _PART_SHAPES:
            if match := shape.fullmatch(text):
                has_word = re.search(rf"\b{PART}\b", match["part"]) is not None
                questions.append(BookQuestion(topic=topic, part=match["part"], part_is_title=not has_word))
    if all(one.part_is_title or _JOINT.search(one.part) for one in questions):
        questions = [*_in_clauses(question, title), *questions]
    return list(dict.fromkeys(questions))


def _in_clauses(question: str, title: str) -> list[BookQuestion]:
    """What the clauses of a question ask of the book: "what is this book and who is it for?", "I'm new here. Which page
    do I read first if I want to build it?". A clause that does not name the book or its pages counts only if the reader
    is new to all of it."""
    newcomer = _NEWCOMER.search(question.lower()) is not None
    found: dict[BookTopic, BookQuestion] = {}
    for clause in _CLAUSE_GAP.split(question):
        for text in _wordings(re.sub(r"\bit\b", "the book", clause) if found else clause, title):
            for topic, shape in _BOOK_SHAPES.items():
                bare = _CONDITION.sub("", text) if topic in ("start", "audience", "prerequisites") else text
                if shape.fullmatch(bare) and (newcomer or _SAYS_BOOK.search(bare)):
                    found.setdefault(topic, BookQuestion(topic=topic))
    questions = list(found.values())
    return [BookQuestion(topic=questions[0].topic, halves=tuple(questions))] if len(questions) > 1 else questions


def _wordings(question: str, title: str) -> list[str]:
    """The question without courtesies, and its last sentence, which may follow an explanation."""
    text = " ".join(question.replace("’", "'").split()).lower()
    for short, spelt in _SHORT_FORMS:
        text = short.sub(spelt, text)
    wordings = []
    for wording in (text, _FULL_STOP.split(text)[-1]):
        bare = _OPENING.sub("", wording.strip(" ?.!")).strip()
        named = _with_book_for_title(bare, title)
        wordings += [variant for whole in (bare, named) for variant in (whole, _CLOSING.sub("", whole))]
    return list(dict.fromkeys(wording.strip(" ,?.!") for wording in wordings if wording))


def _with_book_for_title(text: str, title: str) -> str:
    """The text with "the book" for the book's title."""
    name = re.sub(r"^the ", "", title.lower())
    if len(name.split()) < MIN_TITLE_WORDS:
        return text
    return re.sub(rf"(?:\bthe )?(?<!\w){re.escape(name)}(?!\w)", "the book", text)
