"""Page addresses, by each generator's own rules."""

from __future__ import annotations

import pytest

from lectern.domain.books import Site
from lectern.reading.frontmatter import FrontMatter
from lectern.reading.routes import page_url, without_prefix

NOTHING = FrontMatter()


@pytest.mark.parametrize(
    ("name", "expected"),
    [  # the examples of Docusaurus' numberPrefix tests
        ("01-intro", "intro"),
        ("0-myDoc", "myDoc"),
        ("003 - myDoc", "myDoc"),
        ("1. Theme API", "Theme API"),
        ("0 --- Client API", "Client API"),
        ("1_ROS", "ROS"),
        ("2024-05-01-news", "2024-05-01-news"),
        ("20-11-2021-x", "20-11-2021-x"),
        ("1.2-api", "1.2-api"),
        ("7.0-upgrade", "7.0-upgrade"),
        ("intro", "intro"),
        ("01", "01"),
        ("3d-vision", "3d-vision"),
        ("1-", "1-"),
    ],
)
def test_number_prefixes_as_docusaurus_strips_them(name: str, expected: str) -> None:
    """A number and its separator go; dates and versions are names."""
    assert without_prefix(name) == expected


@pytest.mark.parametrize(
    ("path", "front", "expected"),
    [
        ("intro.md", NOTHING, "/intro"),
        ("01-intro.md", NOTHING, "/intro"),
        ("01-part/02-chapter/03-lesson.mdx", NOTHING, "/part/chapter/lesson"),
        ("module-1-ros2/chapter-3-x/01-a.md", NOTHING, "/module-1-ros2/chapter-3-x/a"),
        ("README.md", NOTHING, "/"),
        ("index.mdx", NOTHING, "/"),
        ("guides/README.md", NOTHING, "/guides/"),
        ("guides/Index.md", NOTHING, "/guides/"),
        ("guides/guides.md", NOTHING, "/guides/"),
        ("01-guides/guides.md", NOTHING, "/guides/guides"),
        ("guides/README.md", FrontMatter(id="chapter-1"), "/guides/"),
        ("guides/a.md", FrontMatter(id="lesson-1-1"), "/guides/lesson-1-1"),
        ("01-guides/a.md", FrontMatter(slug="short"), "/guides/short"),
        ("01-guides/a.md", FrontMatter(slug="./short"), "/guides/short"),
        ("01-guides/a.md", FrontMatter(slug="../up"), "/up"),
        ("guides/a.md", FrontMatter(slug="../../../up"), "/up"),
        ("a/guides/a.md", FrontMatter(slug=".."), "/a/"),
        ("guides/a.md", FrontMatter(slug="/"), "/"),
        ("guides/a.md", FrontMatter(slug="/abs/olute"), "/abs/olute"),
        ("guides/a.md", FrontMatter(slug="/abs/"), "/abs/"),
        ("guides/README.md", FrontMatter(slug="welcome"), "/guides/welcome"),
        ("guides/a.md", FrontMatter(id="x", slug="y"), "/guides/y"),
        ("a.summary.md", NOTHING, "/a.summary"),
        ("doc with space.md", NOTHING, "/doc%20with%20space"),
        ("第一課.md", NOTHING, "/%E7%AC%AC%E4%B8%80%E8%AA%B2"),
    ],
)
def test_docusaurus(path: str, front: FrontMatter, expected: str) -> None:
    """Prefixes, ids, slugs absolute and relative, and the three names of a folder's index."""
    assert page_url("docusaurus", None, path, front) == expected


@pytest.mark.parametrize(
    ("path", "pretty", "plain"),
    [
        ("index.md", "/", "/index.html"),
        ("README.md", "/", "/index.html"),
        ("about.md", "/about/", "/about.html"),
        ("guide/index.md", "/guide/", "/guide/index.html"),
        ("guide/01-start.md", "/guide/01-start/", "/guide/01-start.html"),
        ("guide/readme.md", "/guide/readme/", "/guide/readme.html"),
    ],
)
def test_mkdocs(path: str, pretty: str, plain: str) -> None:
    """Folders by default, files where use_directory_urls is off; numbers stay, and only README counts as index."""
    assert page_url("mkdocs", None, path, NOTHING) == pretty
    assert page_url("mkdocs", None, path, NOTHING, directory_urls=False) == plain


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("ch01-02-x.md", "/ch01-02-x.html"),
        ("guide/README.md", "/guide/index.html"),
        ("README.md", "/index.html"),
        ("guide/readme.md", "/guide/index.html"),
        ("guide/index.md", "/guide/index.html"),
        ("SUMMARY.md", "/index.html"),
    ],
)
def test_mdbook(path: str, expected: str) -> None:
    """Every page is an .html file; README becomes index; the contents have no page of their own."""
    assert page_url("mdbook", None, path, NOTHING) == expected


@pytest.mark.parametrize(
    ("path", "expected"), [("a/b.md", "/a/b.md"), ("README.md", "/README.md"), ("ä.md", "/%C3%A4.md")]
)
def test_plain(path: str, expected: str) -> None:
    """Without a generator the page is the file."""
    assert page_url("plain", None, path, NOTHING) == expected


@pytest.mark.parametrize("site", ["docusaurus", "mkdocs", "mdbook", "plain"])
@pytest.mark.parametrize("base", ["https://example.org/docs", "https://example.org/docs/"])
def test_a_base_url_comes_first(site: Site, base: str) -> None:
    """With one slash between, however it was written; a slug in front matter of another site changes nothing."""
    url = page_url(site, base, "guide/start.md", NOTHING)

    assert url.startswith("https://example.org/docs/guide/start")
    assert url == page_url(site, "https://example.org/docs", "guide/start.md", NOTHING)
