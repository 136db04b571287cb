"""A file's folders read as levels of the book: module, chapter, lesson. Folders that only wrap the book are stepped
over; the first level below them are its modules, the second its chapters, and what lies deeper belongs to a chapter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lectern.domain.books import MAIN_MODULE
from lectern.reading.manifest import Declared
from lectern.reading.numbers import folder_number
from lectern.reading.slugs import slugged

WRAPPERS = frozenset({"docs", "src", "content"})
_OVERVIEWS = frozenset({"readme", "index", "_index"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """Where a file lies. Folders are POSIX paths from the book's folder."""

    file: str
    module: str  # slug
    module_folder: str  # for the module `main`, the folder that the book begins in
    chapter_folder: str | None  # None: the file lies straight in its module
    below: str  # folders between the chapter's and the file, "" for none
    name: str  # the file's, without its extension

    @property
    def folder(self) -> str:
        """The file's own folder."""
        return self.file.rpartition("/")[0]

    @property
    def overview(self) -> bool:
        """Whether the file speaks for its folder: README, index, or (as Docusaurus has it) named like the folder."""
        name, own = self.name.lower(), self.folder.rpartition("/")[2].lower()
        return name in _OVERVIEWS or (bool(own) and name == own)


def spots_of(files: list[str], declared: Declared) -> Iterator[Spot]:
    """A spot for every file."""
    modules = {module.folder: module.slug for module in declared.modules}
    wrapped = _wrapping(files, modules)
    for file in files:
        steps = file.split("/")
        depth = min(wrapped.get(steps[0], 0), len(steps) - 1)
        module, taken = _declared_module(steps, depth, modules)
        if module is None:
            inside = steps[depth:-1]
            module, taken = (slugged(inside[0]), depth + 1) if inside else (MAIN_MODULE, depth)
        chapter = steps[taken:-1][:1]
        yield Spot(
            file=file,
            module=module,
            module_folder="/".join(steps[:taken]),
            chapter_folder="/".join([*steps[:taken], *chapter]) if chapter else None,
            below="/".join(steps[taken + 1 : -1]),
            name=steps[-1].rpartition(".")[0],
        )


def _declared_module(steps: list[str], depth: int, modules: dict[str, str]) -> tuple[str | None, int]:
    """A module that the manifest names by its folder, seen from the book's folder or from where wrapping ones end."""
    for start in dict.fromkeys((0, depth)):
        for end in range(len(steps) - 1, start, -1):
            if (slug := modules.get("/".join(steps[start:end]))) is not None:
                return slug, end
    return None, 0


def _wrapping(files: list[str], modules: dict[str, str]) -> dict[str, int]:
    """By first folder, how many folders to step over: docs, src, content, and one that holds the whole book (once, and
    unless it is a module by the manifest or by its number)."""
    skipped: dict[str, int] = {}
    for top in {file.split("/")[0] for file in files if "/" in file}:
        if top in modules:
            continue
        inside = [file.split("/", 1)[1] for file in files if file.startswith(f"{top}/")]
        lone = len(inside) == len(files)
        if top.lower() in WRAPPERS:
            skipped[top] = 1 + (_lone_top(inside, modules) if lone else 0)
        elif lone and folder_number(top) is None:
            skipped[top] = 1 + (1 if _only_top(inside).lower() in WRAPPERS else 0)
    return skipped


def _only_top(files: list[str]) -> str:
    """The folder that all these files lie in, or ""."""
    tops = {file.split("/")[0] if "/" in file else "" for file in files}
    return tops.pop() if len(tops) == 1 else ""


def _lone_top(files: list[str], modules: dict[str, str]) -> int:
    top = _only_top(files)
    return 1 if top and top not in modules and folder_number(top) is None else 0
