"""The files of the page: its words, small modules, one place for HTML, nothing from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lectern.api.web_files import web_file

ROOT = Path(__file__).resolve().parent.parent.parent
WEB = ROOT / "src" / "lectern" / "api" / "web"
SCRIPTS = sorted(WEB.rglob("*.js"))
MODULES = [file for file in SCRIPTS if file.parent.name in ("shared", "page", "desk", "widget", "embed")]
STRINGS = ROOT / "src" / "lectern" / "strings"
MAX_LINES = 300


def words(language: str) -> dict[str, str]:
    """The strings of a language, as a page gets them."""
    texts: dict[str, str] = json.loads(web_file(STRINGS / f"{language}.json").content)
    return texts


def test_every_word_on_the_page_exists() -> None:
    """Every key that a module or the page names is in the strings."""
    texts = "".join(file.read_text(encoding="utf-8") for file in [*MODULES, *WEB.rglob("index.html")])
    keys = set(re.findall(r'\bt\(\s*(?:\w+ \? )?"([a-z_.]+)"', texts)) | set(
        re.findall(r'data-t[a-z-]*="([^"]+)"', texts)
    )
    keys |= set(re.findall(r'\? "([a-z]+\.[a-z_.]+)" : "[a-z]+\.[a-z_.]+"', texts))

    assert keys - words("en").keys() == set()


def test_html_enters_in_one_place() -> None:
    """Only `setSanitised` writes HTML, and only the server's own rendering goes through it."""
    for file in SCRIPTS:
        text = file.read_text(encoding="utf-8")
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|setHTMLUnsafe|createContextualFragment", text
        )
        assert found == (["innerHTML"] if file.name == "dom.js" else []), file.name
        assert not re.search(r"\beval\(|new Function|setAttribute\(\s*\"style\"", text), file.name


def test_nothing_comes_from_elsewhere() -> None:
    """No file names another host, and pages have no script or style of their own."""
    for file in [*SCRIPTS, *WEB.rglob("*.css"), *WEB.rglob("*.html")]:
        addresses = re.findall(r"https?://[^\s\"'`)]+", file.read_text(encoding="utf-8"))
        assert [address for address in addresses if address != "http://www.w3.org/2000/svg"] == [], file.name
    for file in WEB.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text), file.name


def test_the_page_loads_its_modules_at_once() -> None:
    """Every module that the page imports is announced in its head, so that none waits for another."""
    text = (WEB / "index.html").read_text(encoding="utf-8")
    announced = set(re.findall(r'rel="modulepreload" href="([^"]+)"', text)) | {"page/main.js"}

    assert announced == {
        file.relative_to(WEB).as_posix() for folder in ("shared", "page") for file in (WEB / folder).glob("*.js")
    }


def test_files_are_short() -> None:
    """A module is one component."""
    for file in [*SCRIPTS, *WEB.rglob("*.css")]:
        assert len(file.read_text(encoding="utf-8").splitlines()) <= MAX_LINES, file.name


def test_types_are_checked() -> None:
    """The JSDoc types of all modules fit together."""
    local = ROOT / ".cache" / "node_modules" / ".bin" / "tsc"
    compiler = str(local) if local.exists() else shutil.which("tsc")
    if compiler is None:
        pytest.skip("no TypeScript: npm install --prefix .cache typescript")
    options = ["--allowJs", "--checkJs", "--noEmit", "--strict", "--target", "es2022", "--module", "esnext"]
    options += ["--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable", "--skipLibCheck"]
    checked = [str(file) for file in MODULES if file.read_text(encoding="utf-8").startswith("// @ts-check")]
    assert checked == [str(file) for file in MODULES]

    result = subprocess.run([compiler, *options, *checked], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout) == (0, "")
