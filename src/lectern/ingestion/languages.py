"""The language of a book: the one that its manifest declares, else the one that its text is in. The report says what
was noticed, because search and replies follow it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from lectern.domain.books import LessonSource, Manifest, Problem, Survey
from lectern.ports.index import Embedder
from lectern.text.language import LANGUAGE_NAMES, UNKNOWN_LANGUAGE, main_code, noticed_language

MANIFEST = "lectern.toml"


def with_language(survey: Survey) -> Survey:
    """The survey of a book whose language is known. A noticed language is part of every lesson's digest, so that all
    lessons get new terms when it changes; a declared one is already."""
    noticed = noticed_language(survey.samples)
    survey = replace(survey, samples=(), problems=(*survey.problems, *_warnings(survey.declared_language, noticed)))
    language = noticed or UNKNOWN_LANGUAGE
    if survey.declared_language is not None or language == survey.manifest.language:
        return survey
    return replace(
        survey,
        manifest=replace(survey.manifest, language=language),
        lessons=tuple(_in_language(lesson, language) for lesson in survey.lessons),
    )


def language_warning(manifest: Manifest, embedder: Embedder) -> list[Problem]:
    """A warning if the embedder does not read the book's language: its vectors would say little, and nothing else would
    show it."""
    spoken, language = embedder.languages, manifest.language
    if spoken is None or main_code(language) in spoken:
        return []
    return [
        _warning(
            f"the book's language is {language!r}, which {embedder.fingerprint!r} does not read: search will rest on "
            "shared words alone, and no answer gets high confidence. Choose another LECTERN_EMBEDDER, or set "
            "`language` if it is wrong"
        )
    ]


def _warnings(declared: str | None, noticed: str | None) -> list[Problem]:
    """What there is to say about a language that is not English, or not the declared one."""
    text = f"{LANGUAGE_NAMES[noticed]} ({noticed})" if noticed else "a language that is not recognised"
    if declared is None:
        if noticed == "en":
            return []
        return [_warning(f"the book's text is in {text}; if that is wrong, set `language`")]
    # Of a language that cannot be recognised, the text may well look like a related one.
    if main_code(declared) not in LANGUAGE_NAMES or noticed in (None, main_code(declared)):
        return []
    return [_warning(f"`language` is {declared!r}, but the text seems to be in {text}; it is taken as declared")]


def _warning(message: str) -> Problem:
    return Problem(file=MANIFEST, line=None, message=message, severity="warning")


def _in_language(lesson: LessonSource, language: str) -> LessonSource:
    return replace(lesson, digest=hashlib.sha256(f"{lesson.digest}\n{language}".encode()).hexdigest())
