"""A file's text, checked and taken apart: what the survey and the reading of a lesson share."""

from __future__ import annotations

from dataclasses import dataclass

from lectern.domain.books import Problem
from lectern.reading.files import decoded
from lectern.reading.frontmatter import FrontMatter, open_front_matter
from lectern.reading.problems import Unreadable
from lectern.reading.rules import ReadingRules

MARKS_PER_TAG = 10  # backticks that cost as much as one tag


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonText:
    """Front matter and body of one file. `text` is the whole of it, lines ended by LF."""

    text: str
    front: FrontMatter
    body: str
    body_line: int  # lines of the file before the body
    problems: tuple[Problem, ...]


def lesson_text(file: str, raw: bytes, rules: ReadingRules) -> LessonText:
    """Take a file's bytes apart. Raises Unreadable where they cannot become a lesson, or would take too long to."""
    text = decoded(raw)
    opened = open_front_matter(file, text, rules.max_front_matter_bytes)
    if (lines := text.count("\n") + 1) > rules.max_lines:
        raise Unreadable(f"the file has {lines:,} lines, the limit is {rules.max_lines:,}; split it into lessons")
    if (marks := text.count("<") + text.count("{/*") + text.count("`") // MARKS_PER_TAG) > rules.max_markup:
        limit = f"the limit is {rules.max_markup:,}; split it into lessons"
        raise Unreadable(f"the file has {marks:,} tags, comments or runs of code marks, {limit}")
    body = text.split("\n", opened.body_line)[opened.body_line] if lines > opened.body_line else ""
    if not body.strip():
        raise Unreadable("there is nothing below the front matter; write the lesson or remove the file")
    return LessonText(text=text, front=opened.front, body=body, body_line=opened.body_line, problems=opened.problems)
