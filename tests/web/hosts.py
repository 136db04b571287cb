"""Real sites that have the widget, each on an origin of its own: MkDocs Material and Docusaurus, built by their own
programs, and pages as mdBook writes them, under a strict security policy."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lectern.reading.headings import anchors, explicit_id
from tests.conftest import ROOT, SAMPLE_BOOK

LESSONS = SAMPLE_BOOK / "docs" / "module-1-ros2" / "chapter-1-ros-graph"
PAGES = {  # the sample book's first chapter, under names that every site keeps
    "index.md": LESSONS / "README.md",
    "graph/nodes.md": LESSONS / "01-nodes-and-topics.md",
    "graph/services.md": LESSONS / "02-services-actions-parameters.md",
    "graph/quality.md": LESSONS / "03-quality-of-service.md",
}
NODE_MODULES = ROOT / ".cache" / "hosts" / "node_modules"
NO_DOCUSAURUS = "no Docusaurus: `make hosts` installs it (two minutes)"


@dataclass
class Host:
    """A site on its own origin: a folder of files, served with these headers."""

    kind: str
    folder: Path
    origin: str
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def book(self) -> str:
        """The id of the book that the site shows."""
        return f"{self.kind}-book"

    def page(self, name: str) -> str:
        """The address of the page of a lesson, such as `graph/nodes`."""
        return f"{self.origin}/{name}{ENDINGS[self.kind]}"


ENDINGS = {"mkdocs": "/", "mdbook": ".html", "docusaurus": ""}


@contextmanager
def hosting(kind: str, folder: Path) -> Iterator[Host]:
    """Serve a folder, which may be filled later, on a free port."""
    folder.mkdir(parents=True, exist_ok=True)
    headers: dict[str, str] = {}

    class Handler(SimpleHTTPRequestHandler):
        def end_headers(self) -> None:
            for name, value in headers.items():
                self.send_header(name, value)
            super().end_headers()

        def translate_path(self, path: str) -> str:
            found = Path(super().translate_path(path))
            page = found.with_name(f"{found.name}.html")  # as a host of static sites does
            return str(page if not found.exists() and page.exists() else found)

        def do_GET(self) -> None:
            if self.path == "/favicon.ico":  # browsers ask for it, and sites need not have one
                self.send_response(204)
                self.end_headers()
            else:
                super().do_GET()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Host(kind, folder, f"http://127.0.0.1:{server.server_port}", headers)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_pages(folder: Path) -> None:
    """The lessons as files."""
    for name, source in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / name)


def mkdocs_book(folder: Path) -> None:
    """A MkDocs project."""
    write_pages(folder / "docs")
    config = {
        "site_name": "Robots",
        "site_url": "https://robots.example/",  # what the tests see is a preview of it
        "theme": {"name": "material", "font": False, "custom_dir": str(folder / "overrides")},
        "plugins": [],
        "markdown_extensions": ["attr_list", "tables"],
    }
    (folder / "overrides").mkdir()
    (folder / "mkdocs.yml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML


def build_mkdocs(folder: Path, host: Host, script: str) -> None:
    """Build the site, with the script where docs/widget.md says."""
    override = f'{{% extends "base.html" %}}\n{{% block scripts %}}{{{{ super() }}}}\n{script}\n{{% endblock %}}\n'
    (folder / "overrides" / "main.html").write_text(override, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(host.folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)


def mdbook_book(folder: Path) -> None:
    """An mdBook project."""
    write_pages(folder / "src")
    (folder / "book.toml").write_text('[book]\ntitle = "Robots"\n', encoding="utf-8")
    lines = [f"- [{Path(name).stem.title()}]({name})" for name in PAGES]
    (folder / "src" / "SUMMARY.md").write_text("# Summary\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


def build_mdbook(folder: Path, host: Host, script: str) -> None:
    """Write the pages as mdBook would, under a policy that allows nothing but the server."""
    server = script.partition('src="')[2].partition("/widget.js")[0]
    allowed = f"script-src {server}; connect-src {server}; img-src {server} blob:; style-src 'self'"
    host.headers["Content-Security-Policy"] = (
        f"default-src 'none'; {allowed}; require-trusted-types-for 'script'; trusted-types lectern"
    )
    (host.folder / "book.css").write_text(MDBOOK_STYLE, encoding="utf-8")
    for name in PAGES:
        page = host.folder / Path(name).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        text = (folder / "src" / name).read_text(encoding="utf-8").partition("\n---\n")[2]
        links = "".join(f'<li><a href="/{Path(each).with_suffix(".html")}">{each}</a></li>' for each in PAGES)
        page.write_text(MDBOOK_PAGE.format(script=script, links=links, text=rendered(text)), encoding="utf-8")


# mdBook makes 1rem ten pixels
MDBOOK_STYLE = """html { font-size: 62.5%; }
body { margin: 0; font: 1.6rem/1.5 sans-serif; color: #333; background: #fff; }
nav { float: left; width: 20rem; } main { margin-left: 22rem; max-width: 75rem; } pre { overflow: auto; }
html.navy body { background: #161923; color: #bcbdd0; } * { letter-spacing: 0.01em; } button { background: lime; }
"""
MDBOOK_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Robots</title><link rel="stylesheet" href="/book.css">
{script}
</head><body><nav><ol>{links}</ol></nav><div id="content"><main>{text}</main></div></body></html>
"""


def rendered(text: str) -> str:
    """Markdown as HTML, with an id on each heading."""
    renderer = MarkdownIt("commonmark").enable("table")
    tokens = renderer.parse(text)
    pairs = [(opening, inline) for opening, inline in pairwise(tokens) if opening.type == "heading_open"]
    ids = anchors("mdbook", [(int(opening.tag[1]), inline.content) for opening, inline in pairs])
    for (opening, inline), anchor in zip(pairs, ids, strict=True):
        opening.attrSet("id", anchor)
        inline.children = [Token("text", "", 0, content=explicit_id(inline.content)[0])]
    return str(renderer.renderer.render(tokens, renderer.options, {}))


def docusaurus_book(folder: Path) -> None:
    """A Docusaurus project."""
    if not (NODE_MODULES / "@docusaurus").exists() or shutil.which("node") is None:
        pytest.skip(NO_DOCUSAURUS)
    write_pages(folder / "docs")
    (folder / "node_modules").symlink_to(NODE_MODULES)
    (folder / "package.json").write_text('{"name": "host", "private": true}', encoding="utf-8")
    (folder / "docusaurus.config.js").write_text(DOCUSAURUS.format(scripts="[]"), encoding="utf-8")


DOCUSAURUS = """module.exports = {{
  title: "Robots", url: "https://example.org", baseUrl: "/", trailingSlash: false,
  onBrokenLinks: "ignore", onBrokenAnchors: "ignore",
  markdown: {{ format: "detect", hooks: {{ onBrokenMarkdownLinks: "ignore" }} }},
  plugins: [["@docusaurus/plugin-content-docs", {{ routeBasePath: "/" }}]],
  themes: ["@docusaurus/theme-classic"],
  scripts: {scripts},
}};
"""


def build_docusaurus(folder: Path, host: Host, script: str) -> None:
    """Build the site, with the script in its configuration."""
    attributes = dict(part.split("=", 1) for part in script.removeprefix("<script ").removesuffix("></script>").split())
    entry = json.dumps([{name: json.loads(value) for name, value in attributes.items()} | {"async": True}])
    (folder / "docusaurus.config.js").write_text(DOCUSAURUS.format(scripts=entry), encoding="utf-8")
    command = [
        "node",
        str(NODE_MODULES / "@docusaurus/core/bin/docusaurus.mjs"),
        "build",
        "--out-dir",
        str(host.folder),
    ]
    environment = {**os.environ, "DOCUSAURUS_NO_UPDATE_NOTIFIER": "1", "NODE_OPTIONS": "--preserve-symlinks"}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)


WRITERS: Mapping[str, Callable[[Path], None]] = {
    "mkdocs": mkdocs_book,
    "mdbook": mdbook_book,
    "docusaurus": docusaurus_book,
}
BUILDERS: Mapping[str, Callable[[Path, Host, str], None]] = {
    "mkdocs": build_mkdocs,
    "mdbook": build_mdbook,
    "docusaurus": build_docusaurus,
}
