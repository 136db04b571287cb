"""A server with publishable keys, and sites that have its widget. What a reader does with the widget."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.answering.scripted import KEY, drafting
from tests.fakeai import FakeAI, Step, fake_ai
from tests.served import LECTERN, lectern, serving
from tests.web.hosts import BUILDERS, WRITERS, Host, hosting

TRUE = "Subscribers request, publishers offer; a best effort publisher never satisfies a reliable subscriber."
MARKED = TRUE.rstrip(".")
PAGE = '<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>A page</title><body><main>{text}</main>{script}'


def writing(draft: str) -> Step:
    """A model that writes this draft, and as judge says nothing."""
    return Step(say=drafting(draft))


@dataclass
class Sites:
    """The server, and the sites that were built so far."""

    folder: Path
    address: str
    ai: FakeAI
    stack: ExitStack
    hosts: dict[str, Host] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """Of the server; commands go through it."""
        return self.folder / "home"

    def host(self, kind: str) -> Host:
        """The site of this kind, with the widget on every page; built when it is first asked for."""
        if kind not in self.hosts:
            project = self.folder / kind
            project.mkdir()
            WRITERS[kind](project)
            host = self.stack.enter_context(hosting(kind, self.folder / f"site-{kind}"))
            lectern("ingest", str(project), "--book", host.book, home=self.home)
            self.keys[kind] = create_key(self.home, host.book, host.origin, self.address)
            BUILDERS[kind](project, host, self.script(kind, host.book))
            self.hosts[kind] = host
        return self.hosts[kind]

    def script(self, kind: str, book: str, **attributes: str) -> str:
        """The element that a page has."""
        settings = {"key": self.keys[kind], "book": book, **attributes}
        data = " ".join(f'data-{name}="{value}"' for name, value in settings.items())
        return f'<script src="{self.address}/widget.js" {data}></script>'

    def page_with(self, host: Host, name: str, script: str, *, text: str = "<h1>A page</h1>", lang: str = "en") -> str:
        """The address of one more page of a site."""
        (host.folder / name).write_text(PAGE.format(script=script, text=text, lang=lang), encoding="utf-8")
        return f"{host.origin}/{name}"


def create_key(home: Path, book: str, *origins: str) -> str:
    """A publishable key."""
    listed = [part for origin in origins for part in ("--origin", origin)]
    command = ["keys", "create", "--name", book, "--publishable", "--book", book, *listed, "--json"]
    return str(json.loads(lectern(*command, home=home).stdout)["key"])


@contextmanager
def widget_sites(folder: Path) -> Iterator[Sites]:
    """A server whose answers a scripted model writes; its sites are built on demand."""
    with ExitStack() as stack, fake_ai() as ai:
        model = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1", "OPENAI_MODEL": "scripted-model"}
        settings = {"LECTERN_HOME": str(folder / "home"), "LECTERN_RATE_LIMIT": "0", **model}
        address = stack.enter_context(serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}))
        yield Sites(folder, address, ai, stack)


def launcher(page: Page) -> Locator:
    """The button on the page."""
    return page.get_by_role("button", name="Ask the book")


def panel(page: Page) -> Locator:
    """The open panel."""
    return page.get_by_role("dialog", name="Ask the book")


def box(page: Page) -> Locator:
    """The box for questions."""
    return page.get_by_role("textbox", name="Your question")


def send(page: Page, question: str) -> None:
    """Type a question and send it."""
    box(page).fill(question)
    box(page).press("Enter")


def ask(page: Page, question: str) -> Locator:
    """Ask and wait for the reply: the turn."""
    turns = page.locator("lectern-widget .turn")
    before = turns.count()
    send(page, question)
    expect(turns).to_have_count(before + 1)
    settled(page)
    return turns.last


def follow_source(turn: Locator) -> None:
    """Unfold the first source of an answer, and go where it is."""
    turn.locator("a.cite").first.click()
    expect(turn.locator(".footnote")).to_contain_text(MARKED)
    turn.locator(".footnote").get_by_role("button", name="Read in the lesson").click()


def settled(page: Page) -> None:
    """Nothing is on its way."""
    expect(page.locator("lectern-widget [aria-busy]")).to_have_count(0)


def marked(page: Page) -> str:
    """The words that are marked in the page's text."""
    return str(page.evaluate("() => [...(CSS.highlights.get('lectern-quote') || [])].map(String).join(' ')"))


def requests_to(page: Page, ending: str) -> list[dict[str, object]]:
    """The bodies of requests to a path, as they will have been sent."""
    bodies: list[dict[str, object]] = []
    page.on("request", lambda request: bodies.append(request.post_data_json) if request.url.endswith(ending) else None)
    return bodies
