"""A real browser, and servers for it: on the sample book alone, and with a scripted model that writes the answers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.answering.scripted import KEY
from tests.fakeai import FakeAI, fake_ai
from tests.served import LECTERN, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MAX_WAIT_MS = 90_000  # a busy machine is slow, and what comes is not waited for longer
expect.set_options(timeout=MAX_WAIT_MS)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine; .ci/run installs one")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file; its loop must not run while tests of other files do."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@dataclass
class Complaints:
    """What the browser complained about, without what a test expects."""

    expected: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Write down errors of scripts, blocked resources and failed requests."""
        page.on("pageerror", lambda error: self.seen.append(str(error)))
        page.on("console", lambda message: self.seen.append(message.text) if message.type == "error" else None)

    def unexpected(self) -> list[str]:
        """The rest."""
        return [text for text in self.seen if not any(word in text for word in self.expected)]


@pytest.fixture
def complaints() -> Complaints:
    """A test adds the statuses that it makes the server answer with to `expected`."""
    return Complaints()


@pytest.fixture
def options() -> dict[str, Any]:
    """Of the browser's context; a test may replace it."""
    return {"locale": "en-GB", "viewport": {"width": 1280, "height": 900}}


@pytest.fixture
def page(browser: Browser, server: str, complaints: Complaints, options: dict[str, Any]) -> Iterator[Page]:
    """A fresh page of the served sample book; an error in its script or a blocked resource fails the test."""
    context = browser.new_context(base_url=server, **options)
    context.set_default_timeout(MAX_WAIT_MS)
    page = context.new_page()
    complaints.watch(page)
    page.goto("/")
    yield page
    context.close()
    assert complaints.unexpected() == []


@dataclass(frozen=True)
class ScriptedSite:
    """A server whose answers a scripted model writes."""

    address: str
    ai: FakeAI


@pytest.fixture(scope="module")
def scripted(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScriptedSite]:
    """That server, on a copy of the sample book's home."""
    home = tmp_path_factory.mktemp("scripted") / "home"
    shutil.copytree(sample_home, home)
    with fake_ai() as ai:
        model = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1", "OPENAI_MODEL": "scripted-model"}
        settings = {"LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0", **model}
        with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
            yield ScriptedSite(address, ai)


@pytest.fixture
def scripted_page(
    browser: Browser, scripted: ScriptedSite, complaints: Complaints, options: dict[str, Any]
) -> Iterator[Page]:
    """A fresh page of the server with the scripted model."""
    context = browser.new_context(base_url=scripted.address, **options)
    context.set_default_timeout(MAX_WAIT_MS)
    page = context.new_page()
    complaints.watch(page)
    page.goto("/")
    yield page
    context.close()
    assert complaints.unexpected() == []
