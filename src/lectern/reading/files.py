"""Files of a book. The folder is never left: links that lead out, devices and pipes are named in the report and not
opened. A file is read once, whole, without blocking, and its text is UTF-8 or nothing."""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from lectern.domain.books import Problem, natural
from lectern.reading.problems import Unreadable, error, warning

SUFFIXES = (".md", ".mdx")
SIDE_FILES = frozenset(
    {"_category_.json", "_category_.yml", "_category_.yaml"}
)  # Docusaurus: a folder's label, position
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})  # and every hidden one: never part of a book
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


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
