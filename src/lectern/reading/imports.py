"""Partials. Docusaurus publishes no page for a file or folder whose name begins with an underscore; its text is seen on
the pages that import it, so that is where a citation of it opens."""

from __future__ import annotations

import posixpath
import re

_IMPORTED = re.compile(r"""^import\s+[\w$]+\s+from\s+['"]([^'"\n]{1,400}\.mdx?)['"]""", re.MULTILINE)


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
