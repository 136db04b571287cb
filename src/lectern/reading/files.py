"""Finds and reads the files of a book. Only files inside the folder are read: links that lead out of it, devices and
pipes are listed in the report and not read. A file is read as a whole without blocking, and must be UTF-8.

Hidden characters are invisible for people, but a machine reads them: direction overrides, zero-width spaces, tag
characters, variation selectors that can carry any bytes, control characters for terminals. They stay in the text, and
the report names them.

Partials are files or folders whose names begin with an underscore. Docusaurus publishes no page for them; their text is
shown on the pages that import them.

`lesson_text` checks a file and separates its front matter from its body, for the survey and for `lessons.py`.
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
from lectern.reading.chunking import ReadingRules
from lectern.reading.frontmatter import FrontMatter, open_front_matter
from lectern.reading.problems import Unreadable, error, warning

SUFFIXES = (".md", ".mdx", ".markdown")
_NO_TEXT_SUFFIXES = frozenset(
    # images, sound, films, fonts
    "ai apng avif bmp drawio eps excalidraw fig gif heic ico icns jfif jpeg jpg kra pdn png psd sketch svg tif tiff "
    "webp xcf 3gp aac aif aiff avi flac flv m4a m4v mid mkv mov mp3 mp4 mpeg mpg oga ogg ogv opus wav webm weba wma "
    "wmv eot otf ttc ttf woff woff2 "
    # archives, programs, data
    "7z apk app bin bz2 class deb dll dmg dylib exe gz iso jar lib msi node o obj rar rpm snap so tar tgz whl xz "
    "zip zst arrow avro bib bibtex csl csv dat db dbf feather geojson gexf glb gltf graphml h5 hdf5 ics jsonl kml "
    "mat ndjson npy npz onnx parquet pb pcap pickle pkl pt pth rda rdata rds rproj safetensors sav shp sqlite "
    "sqlite3 stl tfrecord tsv url usd usda usdz vtt srt xls xlsx ods key numbers "
    # programs' texts, settings
    "asm astro awk bash bat bazel bicep bzl c cc cfg cjs clj cljs cmake cmd coffee conf cpp cs csproj css csx cts "
    "cu cxx d dart diff dockerfile dot el elm env erl ex exs f f90 fish fs fsx gd gemspec gitattributes gitignore "
    "gitkeep gleam glsl go gql gradle graphql groovy gv h hbs hcl hpp hrl hs hx ini ino jinja jinja2 j2 jl js json "
    "json5 jsonc jsx kt kts launch less lisp lock lua m make mermaid mjs mk ml mli mmd mod mts nim nims nix njk "
    "nu pas patch php pl plist pm po pot prisma properties proto ps1 psm1 puml py pyi pyx r rake rb rego rkt rs s "
    "sass sbt scad scala scm scss service sh sln snap sol sql stylus styl sum sv svelte swift tcl template tf tfvars "
    "thrift tmpl toml ts tsx urdf v vala vb vbs vcxproj vhd vhdl vim vue wasm wat webmanifest wgsl xacro xml xsd "
    "xsl xslt yaml yml zig zsh log map bak swp tmp orig".split()
)  # what is no text of a book; a file with any other suffix is named in the report if it is not read
CONFIG_NAMES = frozenset(
    "docusaurus.config.js docusaurus.config.ts docusaurus.config.mjs docusaurus.config.cjs mkdocs.yml mkdocs.yaml "
    "book.toml _toctree.yml".split()
)  # of a site; `sites.py` reads them
SIDE_FILES = frozenset(
    {"_category_.json", "_category_.yml", "_category_.yaml"}
)  # Docusaurus: a folder's label, position
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__"})  # hidden folders are skipped too
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
_FLAG = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"
)  # the flags of England, Scotland and Wales use tag characters
MARKS_PER_TAG = 10  # backticks that cost as much as one tag


@dataclass(slots=True)
class BookFiles:
    """The files of a book's folder: Markdown files, side files of the site, and problems with others."""

    files: list[str] = field(default_factory=list)
    side_files: list[str] = field(default_factory=list)
    config_files: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # files that may be texts, in formats that are not read
    problems: list[Problem] = field(default_factory=list)
    unusable: int = 0  # Markdown files that are in `problems` instead of `files`


def find_files(root: Path, exclude: Iterable[str] = ()) -> BookFiles:
    """The Markdown and side files below `root` that are neither excluded nor hidden, in path order."""
    book_files, patterns = BookFiles(), tuple(exclude)
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder if folder else root) as entries:
                listed = list(entries)
        except OSError as exc:
            book_files.unusable += 1
            book_files.problems.append(
                error(folder or ".", None, f"this folder cannot be listed ({exc.strerror}); check its rights")
            )
            continue
        for entry in listed:
            if not entry.name.startswith("."):
                _sort_in(entry, f"{folder}/{entry.name}" if folder else entry.name, root, patterns, book_files, pending)
    book_files.files.sort(key=natural)
    book_files.side_files.sort(key=natural)
    book_files.unread.sort(key=natural)
    book_files.problems.sort(key=lambda problem: problem.file)
    return book_files


def _sort_in(
    entry: os.DirEntry[str], path: str, root: Path, patterns: tuple[str, ...], book_files: BookFiles, pending: list[str]
) -> None:
    if any(excluded(path, pattern) for pattern in patterns):
        return
    if entry.is_dir(follow_symlinks=False):
        if entry.name not in SKIPPED_FOLDERS:
            pending.append(path)
    elif entry.name.lower().endswith(SUFFIXES):
        if not printable(path):
            book_files.unusable += 1
            message = "this name is not valid UTF-8 or holds control characters; rename the file"
            book_files.problems.append(error(printable_path(path), None, message))
        elif entry.is_symlink() and entry.is_dir():
            book_files.problems.append(
                warning(path, None, "this link to a folder is not followed; move the folder here")
            )
        else:
            book_files.files.append(path)
    elif entry.is_symlink() and entry.is_dir() and entry.name not in SKIPPED_FOLDERS:
        book_files.problems.append(
            warning(printable_path(path), None, "this link to a folder is not followed; move the folder here")
        )
    elif printable(path):
        _sort_in_other(entry.name, path, book_files)


def _sort_in_other(name: str, path: str, book_files: BookFiles) -> None:
    if name in SIDE_FILES:
        book_files.side_files.append(path)
    elif name in CONFIG_NAMES:
        book_files.config_files.append(path)
    elif (suffix := posixpath.splitext(name)[1][1:].lower()) and suffix not in _NO_TEXT_SUFFIXES:
        book_files.unread.append(path)


def printable(path: str) -> bool:
    """Whether a path is valid UTF-8 without control characters."""
    if path.isascii() and path.isprintable():
        return True
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not any(unicodedata.category(char) == "Cc" for char in path)


def printable_path(path: str) -> str:
    """A path with escapes for invalid bytes and unprintable characters, for the report."""
    readable = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in readable)


def excluded(path: str, pattern: str) -> bool:
    """Whether a pattern excludes a path. `*` matches within a folder, `**` across folders. A pattern without a slash
    matches a name at any depth, and a pattern that matches a folder excludes everything in it."""
    steps, pattern_steps = path.split("/"), pattern.strip("/").removeprefix("./").split("/")
    if len(pattern_steps) == 1 and pattern_steps[0] != "**":
        return any(fnmatchcase(step, pattern_steps[0]) for step in steps)
    reached = {0}  # positions in `wanted` that the steps so far can have reached
    for step in steps:
        reached = _advance(reached, step, pattern_steps)
        if len(pattern_steps) in reached:
            return True
    return False


def _advance(reached: set[int], step: str, pattern_steps: list[str]) -> set[int]:
    after: set[int] = set()
    for begin in reached:
        at = begin
        while at < len(pattern_steps) and pattern_steps[at] == "**":
            after.add(at)  # ** matches this step
            if at == len(pattern_steps) - 1:
                after.add(len(pattern_steps))
            at += 1  # or ** matches no step
        if at < len(pattern_steps) and fnmatchcase(step, pattern_steps[at]):
            after.add(at + 1)
    return after


def read_bytes(root: Path, source_file: str, limit: int, resolved: dict[str, str] | None = None) -> bytes:
    """The bytes of a file. Raises Unreadable unless it is a regular file inside `root` of at most `limit` bytes.
    `resolved` caches the real paths of folders, for a caller that reads many files."""
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
    """All bytes up to the end of the file, which may have grown since its size was read."""
    raw = os.read(handle, size + 1)
    while len(raw) <= limit and (more := os.read(handle, size + 1)):
        raw += more
    if len(raw) > limit:
        raise _too_large(len(raw), limit)
    return raw


def _within(path: str, root: str) -> bool:
    """Whether a resolved path is inside a resolved folder."""
    return path.startswith(root if root.endswith(os.sep) else root + os.sep)


def _too_large(size: int, limit: int) -> Unreadable:
    return Unreadable(f"the file has {size:,} bytes, the limit is {limit:,}; split it into several lessons")


def decoded(raw: bytes) -> str:
    """The text of a Markdown file without byte order mark, with LF line ends. Raises Unreadable if it is no text."""
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
    """The line of the first hidden character and a message about all of them. Joiners, which some scripts need, do not
    count."""
    if not _HIDDEN.search(text):
        return None
    matches = list(_HIDDEN.finditer(_FLAG.sub(lambda flag: " " * len(flag[0]), text)))
    if not matches:
        return None
    first = matches[0]
    name = unicodedata.name(first[0], f"U+{ord(first[0]):04X}")
    more = f" and {len(matches) - 1} more" if len(matches) > 1 else ""
    message = f"the text holds a character that nobody sees ({name}){more}; remove it unless it is meant"
    return text.count("\n", 0, first.start()) + 1, message


def partial(file: str) -> bool:
    """Whether Docusaurus publishes no page for this file."""
    return any(step.startswith("_") for step in file.split("/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonText:
    """The front matter and the body of a file. `text` is the whole file with LF line ends."""

    text: str
    front: FrontMatter
    body: str
    body_line: int  # lines of the file before the body
    problems: tuple[Problem, ...]


def lesson_text(file: str, raw: bytes, rules: ReadingRules) -> LessonText:
    """Separate the front matter of a file from its body. Raises Unreadable if the file cannot become a lesson, or would
    take too long to read."""
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
