"""Where the links and images of a lesson lead: to another lesson, to a file of the book, or to another site."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

from lectern.domain.books import Site
from lectern.domain.outline import OutlineLesson
from lectern.rendering.markdown import outside_link

MAX_TARGET = 2_000  # characters of a link
IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".svg": "image/svg+xml",
}
_PAGE_ENDS = ("", ".md", ".mdx", "/index.md", "/index.mdx", "/README.md")
_STATIC_FOLDERS: Mapping[Site, tuple[str, ...]] = {  # where a site has the files of `/img/a.png`
    "docusaurus": ("static", "docs", ""),
    "mkdocs": ("docs", ""),
    "mdbook": ("src", ""),
    "plain": ("", "static", "docs"),
}


def image_type(path: str) -> str | None:
    """The media type of an image by its name; None if it is no image."""
    return IMAGE_TYPES.get(posixpath.splitext(path)[1].lower())


@dataclass(slots=True)
class LessonLinks:
    """Resolves the links of one lesson."""

    book_id: str
    site: Site
    lesson: OutlineLesson
    lessons: Iterable[OutlineLesson]
    has_file: Callable[[str], bool] | None  # None: the book's folder cannot be read
    _by_file: dict[str, OutlineLesson] = field(init=False)
    _by_url: dict[str, OutlineLesson] = field(init=False)
    _images: dict[str, str | None] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_file = {lesson.source_file: lesson for lesson in self.lessons}
        self._by_url = {_page_name(lesson.url): lesson for lesson in self.lessons}

    def link(self, target: str) -> Mapping[str, str] | None:
        """The attributes of a link; None where it leads nowhere."""
        if not target or len(target) > MAX_TARGET:
            return None
        try:
            parts = urlsplit(target)
            address = urljoin(self.lesson.url, target)
        except ValueError:
            return None
        if parts.scheme or parts.netloc:
            lesson = self._by_url.get(_page_name(target)) if "://" in self.lesson.url else None
            return self._inside(lesson, parts.fragment) if lesson else outside_link(target)
        lesson = self.lesson if not parts.path else self._lesson_at(unquote(parts.path), address)
        if lesson is not None:
            return self._inside(lesson, unquote(parts.fragment))
        return outside_link(address)  # a page of the site that is no lesson; nothing if the site is not known

    def _lesson_at(self, path: str, address: str) -> OutlineLesson | None:
        path = path.removeprefix("@site/") if path.startswith("@site/") else path
        folders = _STATIC_FOLDERS[self.site] if path.startswith("/") else (posixpath.dirname(self.lesson.source_file),)
        for folder in folders:
            name = _joined(folder, path.lstrip("/"))
            stem = name.removesuffix(".html")
            for end in _PAGE_ENDS:
                if name and (lesson := self._by_file.get(f"{stem}{end}")):
                    return lesson
        return self._by_url.get(_page_name(address))

    def _inside(self, lesson: OutlineLesson, anchor: str) -> Mapping[str, str]:
        query = urlencode({"book": self.book_id, "lesson": lesson.parent_doc_id})
        attributes = {"data-lesson": lesson.parent_doc_id, "href": f"?{query}"}
        if anchor:
            attributes |= {"data-anchor": anchor, "href": f"?{query}#{quote(anchor)}"}
        return attributes

    def image(self, target: str) -> str | None:
        """The path of an image below the book's folder; None if it is none of the book's files."""
        if target not in self._images:
            self._images[target] = self._image(target)
        return self._images[target]

    @property
    def images(self) -> tuple[tuple[str, str | None], ...]:
        """The images that were asked for, and what they are."""
        return tuple(self._images.items())

    def _image(self, target: str) -> str | None:
        target = target.removeprefix("pathname://")
        try:
            parts = urlsplit(target)
        except ValueError:
            return None
        path = unquote(parts.path)
        if not path or len(target) > MAX_TARGET or parts.scheme or parts.netloc or image_type(path) is None:
            return None
        if path.startswith("@site/"):
            candidates = [_joined("", path.removeprefix("@site/"))]
        elif path.startswith("/"):
            candidates = [_joined(folder, path.lstrip("/")) for folder in _STATIC_FOLDERS[self.site]]
        else:
            candidates = [_joined(posixpath.dirname(self.lesson.source_file), path)]
        inside = [name for name in candidates if name]
        if self.has_file is None:
            return None
        return next((name for name in inside if self.has_file(name)), None)


def _joined(folder: str, path: str) -> str:
    """A path below the book's folder; "" if it leads out of it, or could be read as an address."""
    name = posixpath.normpath(posixpath.join(folder, path))
    return "" if name.startswith(("..", "/")) or name == "." or any(sign in name for sign in "\0\\:") else name


def _page_name(url: str) -> str:
    """A URL without what several addresses of one page differ in."""
    bare = url.partition("#")[0].partition("?")[0]
    return unquote(bare).removesuffix("index.html").removesuffix(".html").rstrip("/") or "/"
