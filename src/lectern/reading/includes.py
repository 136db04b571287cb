"""Puts what a page includes in the place of its directives, so that the page is read as its site shows it.

Files are included from the repository of the book only: the nearest folder above it with a `.git` or `.github`, else
the folder of the site's configuration, else the book's own folder. Links that lead out of it, hidden files and what is
no text are refused, and nothing is fetched. The number, depth and size of what a page includes are limited. A directive
that cannot be followed is a warning with its line, and its text is left out.

Each line of the result knows its line in the lesson's file and, if it was included, its own file and line there.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

from lectern.domain.books import Inclusion, Problem
from lectern.reading.chunking import ReadingRules
from lectern.reading.directives import (
    TOO_LARGE,
    Directive,
    NumberedLine,
    Syntax,
    Target,
    directives,
    in_order,
    selected,
)
from lectern.reading.files import MARKS_PER_TAG, decoded, read_bytes
from lectern.reading.frontmatter import open_front_matter
from lectern.reading.generated import code_documentation, templates, variables
from lectern.reading.jsx import jsx_directives
from lectern.reading.problems import Unreadable, warning

MAX_INCLUDES = 1000  # of one page, nested ones too; the Rust book has 40 on a page
MAX_DEPTH = 10  # as mdBook
MAX_INCLUDED_BYTES = 1024 * 1024  # of one file
MAX_SCANNED = 64 * 1024 * 1024  # characters of included files that are read for one page
MAX_CACHED = 32 * 1024 * 1024  # characters of included files that are kept for the next page
_REPOSITORY_SIGNS = (".git", ".github", ".hg")
_MARKDOWN = (".md", ".mdx", ".markdown")
_CODE_SUFFIXES = ("", ".js", ".jsx", ".ts", ".tsx", ".mjs")  # an import may leave them out
_CODE_SYNTAXES = frozenset({"mdbook", "snippets"})  # their directives count in included code too
_INDENT = re.compile(r"[ \t>]*$")
_TICKS = re.compile(r"`{3,}")
_FENCE_WITH_LANGUAGE = re.compile(r"[ \t>]*(`{3,99}|~{3,99})[ \t]*([^\s,{]*)")
_HIDDEN_RUST = re.compile(r"\s*#(?: .*)?$")
_ESCAPED_RUST = re.compile(r"^(\s*)##")
_HINTS: dict[Syntax, Callable[[str], bool]] = {
    "mdbook": lambda text: "{{" in text or ("#" in text and ("```rust" in text or "~~~rust" in text)),
    "snippets": lambda text: "8<-" in text,
    "mdx_include": lambda text: "{!" in text,
    "variants": lambda text: "{*" in text,
    "docusaurus": lambda text: "import " in text or "mdx-code-block" in text or "`}" in text or "raw-loader!" in text,
    "wiki": lambda text: "![[" in text,
    "code_documentation": lambda text: ":::" in text,
    "templates": lambda text: "{{" in text or "{%" in text,
    "variables": lambda text: "{{" in text,
}
_FINDERS = {"code_documentation": code_documentation, "templates": templates, "variables": variables}
Part = tuple[str, str]  # a file, and which section of it if not all
Origin = tuple[str, int]  # a file, as a path from the book's folder, and a line in it, from 1


@dataclass(frozen=True, slots=True)
class ShownLine:
    """A line of a page as its site shows it."""

    text: str
    at: int  # the line of the lesson's body that it stands for, from 0
    origin: Origin | None = None  # where it is from, if it was included


@dataclass(frozen=True, slots=True, kw_only=True)
class Expanded:
    """A page with what it includes."""

    lines: list[ShownLine]
    inclusion: Inclusion  # with the digest of the lines
    problems: tuple[Problem, ...]
    resolved: int  # directives that were followed
    failed: int  # directives that were not
    generated: int  # parts that are made when the site is built, and are left out

    @property
    def text(self) -> str:
        """The body as its site shows it."""
        return "\n".join(line.text for line in self.lines)


def repository_of(folder: Path, site_folder: Path | None, limits: Iterable[Path] = ()) -> Path:
    """The folder that files may be included from, at most as high as that of `limits` that contains the book. It is
    never the root of the file system."""
    here = Path(os.path.realpath(folder))
    ceiling = next((limit for path in limits if here.is_relative_to(limit := Path(os.path.realpath(path)))), None)
    for root in (here, *here.parents):
        if root == Path(root.anchor):
            break
        if any((root / sign).exists() for sign in _REPOSITORY_SIGNS):
            return root
        if root == ceiling:
            break
    site = Path(os.path.realpath(site_folder)) if site_folder is not None else here
    inside = here.is_relative_to(site) and (ceiling is None or site.is_relative_to(ceiling))
    return site if inside and site != Path(site.anchor) else here


class Includer:
    """Expands the pages of one book, and keeps the included files that it read."""

    def __init__(
        self, folder: Path, inclusion: Inclusion, rules: ReadingRules, notes: Iterable[tuple[str, str]]
    ) -> None:
        self.folder, self.inclusion, self.rules = folder, inclusion, rules
        self.notes: defaultdict[str, list[str]] = defaultdict(list)  # files by the names of notes
        for name, file in notes:
            self.notes[name].append(file)
        self.root = Path(os.path.realpath(folder / inclusion.root))
        self._cache: dict[str, list[str]] = {}
        self._cached = 0

    def expand(self, file: str, body: str, first_line: int) -> Expanded | None:
        """A page with what it includes; None if it includes nothing. `first_line` is the line of the file before the
        body."""
        if not any(_HINTS[syntax](body) for syntax in self.inclusion.syntaxes):  # type: ignore[index]  # a plain text
            return None
        expansion = _Expansion(self, file, body, first_line)
        lines = expansion.page(list(enumerate(body.split("\n"), 1)), file, None, ((file, ""),))
        if expansion.generated and not any(line.text.strip() for line in lines):
            lines = [ShownLine(", ".join(expansion.names), 0)]  # what the page is about, so that it can be found
        if "mdbook" in self.inclusion.syntaxes:
            lines = _without_hidden_rust(lines)
        if len(lines) == body.count("\n") + 1 and "\n".join(line.text for line in lines) == body:
            return None
        notes = tuple((name, note) for name in sorted(expansion.notes) for note in self.notes[name])
        return Expanded(
            lines=lines,
            inclusion=replace(self.inclusion, notes=notes, digest=_digest(lines)),
            problems=tuple(expansion.problems),
            resolved=expansion.resolved,
            failed=expansion.failed,
            generated=expansion.generated,
        )

    def lines_of(self, candidates: Sequence[str]) -> tuple[str, list[str]]:
        """The path and the lines of the first candidate that is a file. Raises Unreadable with the reason."""
        outside = False
        for candidate in candidates:
            path = os.path.realpath(self.folder / candidate)
            relative = os.path.relpath(path, self.root)
            if not Path(path).is_relative_to(self.root) or relative == ".":
                outside = True
            elif any(step.startswith(".") for step in Path(relative).parts):
                raise Unreadable("hidden files are not included; rename it, or write its text here")
            elif os.path.isfile(path):  # noqa: PTH113  # the path is resolved
                if relative not in self._cache:
                    self._read(relative)
                return posixpath.normpath(candidate), self._cache[relative]
        if outside:
            raise Unreadable("it is outside the book's repository; move it into the repository")
        raise Unreadable("there is no such file; mend its path")

    def _read(self, relative: str) -> None:
        raw = read_bytes(self.root, Path(relative).as_posix(), MAX_INCLUDED_BYTES)
        lines = decoded(raw).split("\n") if raw.strip() else []
        if lines and not lines[-1]:
            lines.pop()
        if self._cached > MAX_CACHED:
            self._cache.clear()
            self._cached = 0
        self._cache[relative] = lines
        self._cached += len(raw)


def _digest(lines: list[ShownLine]) -> str:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(f"{line.at}\0{line.origin}\0{line.text}\n".encode())
    return digest.hexdigest()


@dataclass(slots=True)
class _Limits:
    """How much more a page may include."""

    includes: int
    characters: int
    lines: int
    marks: int
    scanned: int = MAX_SCANNED

    def take(self, lines: Sequence[NumberedLine]) -> None:
        """Count lines that are to be included. Raises Unreadable if they are too many."""
        text = "\n".join(line for _, line in lines)
        marks = text.count("<") + text.count("{/*") + text.count("`") // MARKS_PER_TAG
        if len(text) > self.characters or len(lines) > self.lines or marks > self.marks:
            raise Unreadable(TOO_LARGE)
        self.characters, self.lines, self.marks = (
            self.characters - len(text),
            self.lines - len(lines),
            self.marks - marks,
        )


class _Expansion:
    """One page while it is expanded."""

    def __init__(self, includer: Includer, file: str, body: str, first_line: int) -> None:
        rules = includer.rules
        self.includer, self.file, self.first_line = includer, file, first_line
        self.limits = _Limits(
            includes=MAX_INCLUDES,
            characters=rules.max_file_bytes - len(body),
            lines=rules.max_lines - body.count("\n") - first_line - 1,
            marks=rules.max_markup - body.count("<") - body.count("{/*") - body.count("`") // MARKS_PER_TAG,
        )
        self.problems: list[Problem] = []
        self.notes: set[str] = set()
        self.names: list[str] = []  # of what is made when the site is built
        self.resolved = self.failed = 0

    @property
    def generated(self) -> int:
        """How many parts are made when the site is built."""
        return len(self.names)

    def page(
        self, numbered: list[NumberedLine], file: str, at: int | None, inside: tuple[Part, ...]
    ) -> list[ShownLine]:
        """The lines of a file with what they include. `at` is the lesson's line that includes the file, None for the
        lesson itself; `inside` are the file and those that include it."""
        if not numbered:
            return []
        text = "\n".join(line for _, line in numbered)
        composer = _Composer(text, numbered, file, at)
        for directive in self._directives(text, file):
            composer.own_until(directive.start)
            line = composer.line if at is None else at
            if directive.name:
                self.names.append(directive.name)
            elif directive.targets:
                composer.insert(self._included(directive, file, line, inside), directive)
            elif directive.text or directive.listing is not None:
                lines = directive.text.split("\n")
                last = composer.line_of(directive.end - 1) if at is None else line
                shown = [ShownLine(words, min(line + 1 + place, last)) for place, words in enumerate(lines)]
                composer.insert(shown if len(lines) > 1 else [replace(shown[0], at=line)], directive)
            composer.skip_to(directive.end)
        return composer.finished()

    def _directives(self, text: str, file: str) -> list[Directive]:
        syntaxes = self.includer.inclusion.syntaxes
        markdown = file.lower().endswith(_MARKDOWN)
        known = [syntax for syntax in syntaxes if markdown or syntax in _CODE_SYNTAXES]
        matches = directives(text, known)  # type: ignore[arg-type]  # a plain text
        matches += [match for syntax in known if syntax in _FINDERS for match in _FINDERS[syntax](text)]
        return in_order([*matches, *jsx_directives(text)] if "docusaurus" in known else matches)

    def _included(self, directive: Directive, file: str, at: int, inside: tuple[Part, ...]) -> list[ShownLine]:
        lines: list[ShownLine] = []
        for target in directive.targets:
            self.limits.includes -= 1
            try:
                lines += self._target(target, directive, file, at, inside)
            except Unreadable as exc:
                self.failed += 1
                if self.limits.includes >= -1:  # one warning stands for all that are too many
                    message = f"{target.path[:200]!r} cannot be included here: {exc.message}"
                    self.problems.append(warning(self.file, at + self.first_line + 1, message))
            else:
                self.resolved += 1
        return lines

    def _target(
        self, target: Target, directive: Directive, file: str, at: int, inside: tuple[Part, ...]
    ) -> list[ShownLine]:
        if self.limits.includes < 0:
            raise Unreadable(f"a page can include {MAX_INCLUDES} files; split the page")
        if "://" in target.path:
            raise Unreadable("addresses are not fetched; copy the file into the book")
        path, lines = self.includer.lines_of(self._candidates(target, directive.syntax, file))
        self.limits.scanned -= sum(map(len, lines))
        part = (path, target.section if directive.syntax == "wiki" else "")
        if part in inside:
            raise Unreadable("it includes itself; break the circle")
        if len(inside) > MAX_DEPTH:  # with the page itself
            raise Unreadable(f"files are included {MAX_DEPTH} levels deep; make the nesting flat")
        if self.limits.scanned < 0:
            raise Unreadable("the page reads too much from large files; split the page or the files")
        shown = selected(lines, target, directive.syntax, self.limits.lines)
        if directive.syntax in ("docusaurus", "wiki") and directive.listing is None and not target.section:
            shown = shown[
                open_front_matter(path, "\n".join(lines), self.includer.rules.max_front_matter_bytes).body_line :
            ]
        self.limits.take(shown)
        if directive.listing is None or directive.syntax == "mdbook":
            return self.page(shown, path, at, (*inside, part))
        return [ShownLine(text, at, (path, number)) for number, text in shown]

    def _candidates(self, target: Target, syntax: Syntax, file: str) -> list[str]:
        """The paths from the book's folder that a target can mean, the likeliest first."""
        inclusion, home = self.includer.inclusion, posixpath.dirname(file)
        if syntax == "mdbook":
            return [posixpath.join(home, target.path)]
        if syntax == "wiki":
            return self._notes(target.path, file) if target.path else [file]
        if syntax == "docusaurus":
            site = target.path.startswith(("@site/", "/"))  # a slash is the site's folder, as its bundler reads it
            path = posixpath.join(
                inclusion.site_folder if site else home, target.path.removeprefix("@site").lstrip("/")
            )
            return [path + suffix for suffix in _CODE_SUFFIXES]
        return [posixpath.join(base, target.path) for base in (*inclusion.bases, home)]

    def _notes(self, path: str, file: str) -> list[str]:
        """The files of the notes that a name can mean: `Note`, `folder/Note` at any depth, `./Note`. One in the folder
        of the page comes first, then those with the shortest path."""
        home = posixpath.dirname(file)
        if path.startswith(("./", "../")):
            path = posixpath.normpath(posixpath.join(home, path))
        wanted = note_name(path.strip("/"))
        name = wanted.rpartition("/")[2]
        self.notes.add(name)
        fitting = [note for note in self.includer.notes[name] if f"/{note_name(note)}".endswith(f"/{wanted}")]
        return sorted(fitting, key=lambda note: (posixpath.dirname(note) != home, note.count("/"), note))


def note_name(path: str) -> str:
    """The path of a note as links name it: without its suffix, in lower case."""
    stem, suffix = posixpath.splitext(path)
    return (stem if suffix.lower() in _MARKDOWN else path).lower()


class _Composer:
    """Joins the lines of a file and the lines that are shown in the places of its directives."""

    def __init__(self, text: str, numbered: list[NumberedLine], file: str, at: int | None) -> None:
        self._text, self._numbered, self._file, self._at = text, numbered, file, at
        self._starts = list(accumulate((len(line) + 1 for _, line in numbered), initial=0))
        self._out: list[ShownLine] = []
        self._buffer = ""
        self._inserted: ShownLine | None = None  # whose text the buffer ends with
        self._position = 0

    def line_of(self, position: int) -> int:
        """The number of the line of a position, from 0."""
        return max(0, min(bisect_right(self._starts, position), len(self._numbered)) - 1)

    @property
    def line(self) -> int:
        """The number of the present line, from 0."""
        return self.line_of(self._position)

    def own_until(self, end: int) -> None:
        """Add the file's own text up to a position."""
        pieces = self._text[self._position : end].split("\n")
        for piece in pieces[:-1]:
            self._buffer += piece
            self._flush()
            self._position += len(piece) + 1
        self._buffer += pieces[-1]
        self._position = end

    def skip_to(self, end: int) -> None:
        """Go on after a directive."""
        self._position = end

    def insert(self, lines: list[ShownLine], directive: Directive) -> None:
        """Add lines in the place of a directive, as indented as it is. Listings and partials are blocks of their
        own."""
        if not lines and directive.listing is None:
            return
        indent = self._buffer if _INDENT.fullmatch(self._buffer) else ""
        at = self.line if self._at is None else self._at
        if directive.listing is None and directive.syntax not in ("docusaurus", "wiki"):
            self._insert_text(lines, indent)
            return
        if self._buffer.strip():
            self._flush()
        self._buffer = ""
        if directive.listing is not None:
            longest = max((len(run) for line in lines for run in _TICKS.findall(line.text)), default=2)
            fence = "`" * (longest + 1)
            lines = [ShownLine(f"{fence}{directive.listing}", at), *lines, ShownLine(fence, at)]
        self._out.append(ShownLine(indent.rstrip(), at))
        self._out += [replace(line, text=f"{indent}{line.text}") for line in lines]
        self._out.append(ShownLine(indent.rstrip(), at))

    def _insert_text(self, lines: list[ShownLine], indent: str) -> None:
        for place, line in enumerate(lines):
            if place:
                self._flush()
                self._buffer = indent
            self._inserted = line if not self._buffer.strip(" \t>") else self._inserted
            self._buffer += line.text

    def finished(self) -> list[ShownLine]:
        """All lines."""
        self.own_until(len(self._text))
        self._flush()
        return self._out

    def _flush(self) -> None:
        if self._inserted is not None:
            line = replace(self._inserted, text=self._buffer)
        elif self._at is None:
            line = ShownLine(self._buffer, self.line)
        else:
            line = ShownLine(self._buffer, self._at, (self._file, self._numbered[self.line][0]))
        self._out.append(line)
        self._buffer, self._inserted = "", None


def _without_hidden_rust(lines: list[ShownLine]) -> list[ShownLine]:
    """The lines without those that mdBook hides: in Rust listings, lines that begin with `# `."""
    out: list[ShownLine] = []
    fence = ""
    rust = False
    for line in lines:
        match = _FENCE_WITH_LANGUAGE.match(line.text)
        text = line.text
        if fence:
            if match and match[1].startswith(fence) and not text.strip(" \t>`~"):
                fence, rust = "", False
            elif rust and _HIDDEN_RUST.match(text):
                continue
            elif rust:
                text = _ESCAPED_RUST.sub(r"\1#", text, count=1)
        elif match:
            fence, rust = match[1], match[2] == "rust"
        out.append(line if text is line.text else replace(line, text=text))
    return out
