"""Files of a book. The folder is never left: links that lead out, devices and pipes are named in the report and not
opened. A file is read once, whole, without blocking, and its text is UTF-8 or nothing.

Characters that a reader cannot see but a machine reads: direction overrides, zero-width spaces, tag characters,
variation selectors that can carry any bytes, controls that drive a terminal. They stay in the text, which is the
author's, and the report points at them.

Partials. Docusaurus publishes no page for a file or folder whose name begins with an underscore; its text is seen on
the pages that import it, so that is where a citation of it opens.

A file's text, checked and taken apart: what the survey and the reading of a lesson share.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from lectern.domain.books import Problem, natural
from lectern.reading.frontmatter import FrontMatter, open_front_matter
from lectern.reading.problems import Unreadable, error, warning
from lectern.reading.rules import ReadingRules

SUFFIXES = (".md", ".mdx")
SIDE_FILES = frozenset(
    {"_category_.json", "_category_.yml", "_category_.yaml"}
)  # Docusaurus: a folder's label, position
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})  # and every hidden one: never part of a book
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_FLAG = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"
)  # flags of England, Scotland, Wales are spelt with tags
_IMPORTED = re.compile(r"""^import\s+[\w$]+\s+from\s+['"]([^'"\n]{1,400}\.mdx?)['"]""", re.MULTILINE)
MARKS_PER_TAG = 10  # backticks that cost as much as one tag


@dataclass(slots=True)
class Found:
    """What a folder holds: lessons-to-be, the site's side files, and what could not even be looked at."""

    files: list[str] = field(default_factory=list)
    side_files: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unusable: int = 0  # Markdown files that are in `problems` instead of `files`


def find_files(root: Path, exclude: Iterable[str] = ()) -> Found:
    """Every Markdown file below `root` that is not excluded, in path order."""
    found, patterns = Found(), tuple(exclude)
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder if folder else root) as entries:
                listed = list(entries)
        except OSError as exc:
            found.unusable += 1
            found.problems.append(
                error(folder or ".", None, f"this folder cannot be listed ({exc.strerror}); check its rights")
            )
            continue
        for entry in listed:
            if not entry.name.startswith("."):
                _sort_in(entry, f"{folder}/{entry.name}" if folder else entry.name, root, patterns, found, pending)
    found.files.sort(key=natural)
    found.side_files.sort(key=natural)
    found.problems.sort(key=lambda problem: problem.file)
    return found


def _sort_in(
    entry: os.DirEntry[str], path: str, root: Path, patterns: tuple[str, ...], found: Found, pending: list[str]
) -> None:
    if any(excluded(path, pattern) for pattern in patterns):
        return
    if entry.is_dir(follow_symlinks=False):
        if entry.name not in SKIPPED_FOLDERS:
            pending.append(path)
    elif entry.name.lower().endswith(SUFFIXES):
        if not printable(path):
            found.unusable += 1
            message = "this name is not valid UTF-8 or holds control characters; rename the file"
            found.problems.append(error(shown(path), None, message))
        elif entry.is_symlink() and entry.is_dir():
            found.problems.append(warning(path, None, "this link to a folder is not followed; move the folder here"))
        else:
            found.files.append(path)
    elif entry.is_symlink() and entry.is_dir() and entry.name not in SKIPPED_FOLDERS:
        found.problems.append(warning(shown(path), None, "this link to a folder is not followed; move the folder here"))
    elif entry.name in SIDE_FILES and printable(path):
        found.side_files.append(path)


def printable(path: str) -> bool:
    """Whether a path can be stored, shown on one line and read back."""
    if path.isascii() and path.isprintable():
        return True
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not any(unicodedata.category(char) == "Cc" for char in path)


def shown(path: str) -> str:
    """A path as a report can print it, whatever bytes it has."""
    readable = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in readable)


def excluded(path: str, pattern: str) -> bool:
    """Whether a pattern takes this path out. `*` stays within a folder, `**` does not; a pattern without a slash
    matches a name at any depth; what matches a folder takes all that is in it."""
    steps, wanted = path.split("/"), pattern.strip("/").removeprefix("./").split("/")
    if len(wanted) == 1 and wanted[0] != "**":
        return any(fnmatchcase(step, wanted[0]) for step in steps)
    reached = {0}  # positions in `wanted` that the steps so far can have reached
    for step in steps:
        reached = _advance(reached, step, wanted)
        if len(wanted) in reached:
            return True
    return False


def _advance(reached: set[int], step: str, wanted: list[str]) -> set[int]:
    after: set[int] = set()
    for begin in reached:
        at = begin
        while at < len(wanted) and wanted[at] == "**":
            after.add(at)  # ** swallows this step
            if at == len(wanted) - 1:
                after.add(len(wanted))
            at += 1  # or nothing
        if at < len(wanted) and fnmatchcase(step, wanted[at]):
            after.add(at + 1)
    return after


def read_bytes(root: Path, source_file: str, limit: int, resolved: dict[str, str] | None = None) -> bytes:
    """A file's bytes. Raises Unreadable for anything but a regular file inside `root` of at most `limit` bytes.
    `resolved` remembers where folders really lie, for a caller that reads many files at one time."""
    resolved = {} if resolved is None else resolved
    if not (real_root := resolved.get("", "")):
        real_root = resolved[""] = os.path.realpath(root)
    folder, _, name = source_file.rpartition("/")
    if (real_folder := resolved.get(folder)) is None:
        real_folder = resolved[folder] = os.path.realpath(os.path.join(real_root, folder))  # noqa: PTH118  # hot
    path = f"{real_folder}{os.sep}{name}"
    if os.path.islink(path):  # noqa: PTH114  # hot
        path = os.path.realpath(path)
    if not _within(path, real_root):
        raise Unreadable("this link leads out of the book's folder and is not followed; copy the file into the book")
    try:
        handle = os.open(path, _OPEN_FLAGS)
    except OSError as exc:
        raise Unreadable(f"the file cannot be opened ({exc.strerror}); check that it exists and its rights") from exc
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable("this is not a regular file (a pipe, device or socket); remove it or exclude it")
        if status.st_size > limit:
            raise _too_large(status.st_size, limit)
        return _all_of(handle, status.st_size, limit)
    except OSError as exc:
        raise Unreadable(f"the file cannot be read ({exc.strerror}); check the disk and its rights") from exc
    finally:
        os.close(handle)


def _all_of(handle: int, size: int, limit: int) -> bytes:
    """Everything to the end, though the file may have grown since it was measured."""
    raw = os.read(handle, size + 1)
    while len(raw) <= limit and (more := os.read(handle, size + 1)):
        raw += more
    if len(raw) > limit:
        raise _too_large(len(raw), limit)
    return raw


def _within(path: str, root: str) -> bool:
    """Whether a real path is in a real folder."""
    return path.startswith(root if root.endswith(os.sep) else root + os.sep)


def _too_large(size: int, limit: int) -> Unreadable:
    return Unreadable(f"the file has {size:,} bytes, the limit is {limit:,}; split it into several lessons")


def decoded(raw: bytes) -> str:
    """The text of a Markdown file: no byte order mark, lines ended by LF. Raises Unreadable for what is no text."""
    if raw.startswith(_UTF16_MARKS):
        raise Unreadable("the file is UTF-16; save it as UTF-8", 1)
    if (nul := raw.find(b"\0")) >= 0:
        raise Unreadable("the file holds a NUL byte, so it is no text; save it as UTF-8", raw.count(b"\n", 0, nul) + 1)
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise Unreadable(f"byte {raw[exc.start]:#04x} is not valid UTF-8; save the file as UTF-8", line) from exc
    if not text.strip():
        raise Unreadable("the file is empty; write the lesson or remove the file")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def hidden_characters(text: str) -> tuple[int, str] | None:
    """The line of the first hidden character and a message on all of them; joiners that scripts need do not count."""
    if not _HIDDEN.search(text):
        return None
    found = list(_HIDDEN.finditer(_FLAG.sub(lambda flag: " " * len(flag[0]), text)))
    if not found:
        return None
    first = found[0]
    name = unicodedata.name(first[0], f"U+{ord(first[0]):04X}")
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    message = f"the text holds a character that nobody sees ({name}){more}; remove it unless it is meant"
    return text.count("\n", 0, first.start()) + 1, message


def imported_files(file: str, text: str) -> tuple[str, ...]:
    """Markdown files that this one imports, as paths from the book's folder (or ending in theirs, for `@site/...`)."""
    if "import" not in text or ".md" not in text:
        return ()
    home = posixpath.dirname(file)
    return tuple(
        target.removeprefix("@site/")
        if target.startswith("@site/")
        else posixpath.normpath(posixpath.join(home, target))
        for target in _IMPORTED.findall(text)
    )


def partial(file: str) -> bool:
    """Whether Docusaurus leaves this file out of its pages."""
    return any(step.startswith("_") for step in file.split("/"))


def importer_of(file: str, imports: dict[str, tuple[str, ...]]) -> str | None:
    """The first page, by path, that shows this partial; through other partials if need be."""
    seen = {file}
    waiting = [file]
    while waiting:
        wanted = waiting.pop(0)
        for page, targets in imports.items():
            if page not in seen and any(target == wanted or target.endswith(f"/{wanted}") for target in targets):
                if not partial(page):
                    return page
                seen.add(page)
                waiting.append(page)
    return None


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
