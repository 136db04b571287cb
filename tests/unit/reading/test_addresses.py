"""Where citations lead: to the site, wherever its configuration says in plain text where that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from lectern.reading.survey import survey
from tests.unit.reading.folders import BODY, write

DOCUSAURUS = """// url: 'https://commented.example'
const config = {{
  title: 'Robots', tagline: 'url: "https://in-a-text.example"',
  {settings}
  presets: [['classic', {{ docs: {{ routeBasePath: '{route}', sidebarPath: './sidebars.js' }} }}]],
  themeConfig: {{ navbar: {{ items: [{{ label: 'Code', url: 'https://elsewhere.example', baseUrl: '/no/' }}] }} }},
}};
"""


def urls(folder: Path, files: dict[str, str], book: str = "") -> list[str]:
    """The addresses of a book's lessons."""
    write(folder, files)
    return [lesson.url for lesson in survey(folder / book if book else folder).lessons]


@pytest.mark.parametrize(
    ("settings", "route", "expected"),
    [
        ("url: 'https://robots.dev', baseUrl: '/',", "docs", "https://robots.dev/docs/a"),
        ("url: 'https://robots.dev/',\n  baseUrl: '/book/',", "/", "https://robots.dev/book/a"),
        ('"url": "https://robots.dev", "baseUrl": "/",', "guide", "https://robots.dev/guide/a"),
        ("url: `https://robots.dev`, baseUrl: '/',", "docs", "https://robots.dev/docs/a"),
        ("url: process.env.URL, baseUrl: '/',", "docs", "/a"),
        ("url: 'https://' + host, baseUrl: '/',", "docs", "/a"),
        ("url: `https://${host}`, baseUrl: '/',", "docs", "/a"),
        ("url: 'https://robots.dev', baseUrl,", "docs", "/a"),
        ("url: 'robots.dev', baseUrl: '/',", "docs", "/a"),
        ("url: 'https://your-docusaurus-site.example.com', baseUrl: '/',", "docs", "/a"),
    ],
)
def test_docusaurus(tmp_path: Path, settings: str, route: str, expected: str) -> None:
    """`url`, `baseUrl` and `routeBasePath`, if all are texts; those of menus and comments are others."""
    config = DOCUSAURUS.format(settings=settings, route=route)

    assert urls(tmp_path, {"docusaurus.config.js": config, "docs/a.md": BODY}) == [expected]


def test_a_part_of_a_docusaurus_site(tmp_path: Path) -> None:
    """The folders between the pages folder and the book are part of the address, without their numbers."""
    config = DOCUSAURUS.format(settings="url: 'https://robots.dev', baseUrl: '/',", route="docs")
    files = {"docusaurus.config.js": config, "docs/02-arms/01-hand.md": BODY, "docs/b.md": BODY}

    assert urls(tmp_path, files, "docs/02-arms") == ["https://robots.dev/docs/arms/hand"]


def test_a_second_docs_plugin(tmp_path: Path) -> None:
    """Its pages are below its own route."""
    config = """module.exports = { url: 'https://robots.dev', baseUrl: '/',
      presets: [['classic', { docs: { path: 'docs' } }]],
      plugins: [['@docusaurus/plugin-content-docs', { id: 'more', path: 'more', routeBasePath: 'extra' }]] };"""

    assert urls(tmp_path, {"docusaurus.config.js": config, "docs/a.md": BODY, "more/b.md": BODY}) == [
        "https://robots.dev/docs/a",
        "https://robots.dev/extra/b",
    ]


def test_a_docs_plugin_without_a_preset(tmp_path: Path) -> None:
    """What it says of the folder `docs` holds, and no preset's defaults."""
    config = """module.exports = { url: 'https://robots.dev', baseUrl: '/',
      plugins: [['@docusaurus/plugin-content-docs', { routeBasePath: '/' }]] };"""

    assert urls(tmp_path, {"docusaurus.config.js": config, "docs/a.md": BODY}) == ["https://robots.dev/a"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("site_url: https://robots.dev/book/", "https://robots.dev/book/a/"),
        ('site_url: "https://robots.dev"\nuse_directory_urls: false', "https://robots.dev/a.html"),
        ("site_url: ''", "/a/"),
        ("site_url: !ENV SITE", "/a/"),
        ("site_url: !ENV [SITE, 'https://robots.dev']", "/a/"),
        ("site_url: [x]", "/a/"),
        ("site_url: ftp://robots.dev", "/a/"),
        ("site_url: https://robots.dev?x=1", "/a/"),
    ],
)
def test_mkdocs(tmp_path: Path, config: str, expected: str) -> None:
    """`site_url`, if it is an address and not taken from the environment."""
    assert urls(tmp_path, {"mkdocs.yml": f"site_name: R\n{config}\n", "docs/a.md": BODY}) == [expected]


def test_a_part_of_an_mkdocs_site(tmp_path: Path) -> None:
    """The book's folder is part of the address."""
    files = {"mkdocs.yml": "site_url: https://robots.dev/\n", "docs/arms/hand.md": BODY, "docs/b.md": BODY}

    assert urls(tmp_path, files, "docs/arms") == ["https://robots.dev/arms/hand/"]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('site-url = "/book/"', "/book/a.html"),
        ('site-url = "/book/"\ncname = "robots.dev"', "https://robots.dev/book/a.html"),
        ('cname = "robots.dev"', "https://robots.dev/a.html"),
        ('site-url = "https://robots.dev/book/"\ncname = "other.dev"', "https://robots.dev/book/a.html"),
        ('site-url = "/"', "/a.html"),
        ("site-url = 3", "/a.html"),
        ("", "/a.html"),
    ],
)
def test_mdbook(tmp_path: Path, html: str, expected: str) -> None:
    """`site-url`, on the domain `cname` if there is one."""
    files = {
        "book.toml": f'[book]\ntitle = "R"\n[output.html]\n{html}\n',
        "src/SUMMARY.md": "# Summary\n\n- [A](a.md)\n",
        "src/a.md": BODY,
    }

    assert urls(tmp_path, files) == [expected]


def test_the_manifest_decides(tmp_path: Path) -> None:
    """Its `base_url` is taken, whatever the site's configuration says."""
    files = {
        "lectern.toml": 'base_url = "https://mirror.dev"',
        "mkdocs.yml": "site_url: https://robots.dev/\n",
        "docs/a.md": BODY,
    }

    assert urls(tmp_path, files) == ["https://mirror.dev/a/"]
