"""Makes the URL of a page from its file by the rules of each site generator, so that a citation opens the right page.
Docusaurus: plugin-content-docs `slug.ts`, `numberPrefix.ts`; MkDocs: `structure/files.py`; mdBook: renderer and the
`index` preprocessor; plain: the file itself.
"""

from __future__ import annotations

import posixpath
import re
from urllib.parse import quote

from lectern.domain.books import Site
from lectern.reading.frontmatter import FrontMatter

_DATE_OR_VERSION = re.compile(r"\d+[-_.]\d+")
_PREFIX = re.compile(r"\d+\s*[-_.]+\s*(?P<rest>[^-_.\s].*)", re.DOTALL)
_SAFE = "/:@!$&'()*+,;=~-._"


def page_url(site: Site, base_url: str | None, path: str, front: FrontMatter, *, directory_urls: bool = True) -> str:
    """The URL of a page without an anchor; `path` is the file's path from the site's pages folder."""
    if site == "docusaurus":
        route = _docusaurus_route(path, front)
    elif site == "mkdocs":
        route = _mkdocs_route(path, directory_urls=directory_urls)
    elif site == "mdbook":
        route = _mdbook_route(path)
    else:
        route = f"/{path}"
    return f"{(base_url or '').rstrip('/')}{quote(route, safe=_SAFE)}"


def spellings(path: str) -> tuple[str, ...]:
    """A path and the others under which a site serves the same page, as they stand in addresses."""
    stem = path.removesuffix("index.html").removesuffix(".html").rstrip("/")
    ends = ("", "/", ".html", "/index.html", "/index")
    return tuple(dict.fromkeys(quote(each or "/", safe=_SAFE) for each in (path, *(f"{stem}{end}" for end in ends))))


def without_prefix(name: str) -> str:
    """A name without Docusaurus' number prefix: `01-intro` is `intro`, but `2024-05-01-news` and `1.2-api` stay."""
    if _DATE_OR_VERSION.match(name):
        return name
    match = _PREFIX.fullmatch(name)
    return match["rest"] if match else name


def _docusaurus_route(path: str, front: FrontMatter) -> str:
    if front.slug and front.slug.startswith("/"):
        return re.sub(r"/{2,}", "/", front.slug)
    folders, _, file = path.rpartition("/")
    name = file.rpartition(".")[0]
    steps = folders.split("/") if folders else []
    home = "".join(f"/{without_prefix(step)}" for step in steps) + "/"
    if not front.slug and name.lower() in ("index", "readme", steps[-1].lower() if steps else "index"):
        return home
    route = posixpath.normpath(posixpath.join(home, front.slug or front.id or without_prefix(name)))
    folder = front.slug and front.slug.rpartition("/")[2] in ("", ".", "..")  # a slug that names a folder
    return f"{route}/" if folder and route != "/" else route


def _mkdocs_route(path: str, *, directory_urls: bool) -> str:
    stem = path.rpartition(".")[0]
    folder, _, name = stem.rpartition("/")
    if name in ("index", "README"):
        home = f"/{folder}/" if folder else "/"
        return home if directory_urls else f"{home}index.html"
    return f"/{stem}/" if directory_urls else f"/{stem}.html"


def _mdbook_route(path: str) -> str:
    stem = path.rpartition(".")[0]
    folder, _, name = stem.rpartition("/")
    if path == "SUMMARY.md":
        return "/index.html"  # the table of contents; mdBook writes no page for it
    if name.lower() == "readme":
        name = "index"
    return f"/{folder}/{name}.html" if folder else f"/{name}.html"
