"""Takes the pictures of the page in docs/img: serves the sample book and does in a browser what a reader does. Needs a
chromium on the machine; `make pictures` runs it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "examples" / "physical-ai-robotics"
FOLDER = ROOT / "docs" / "img"
LECTERN = str(Path(sys.executable).with_name("lectern"))
ANSWERED = "What does a best effort publisher mean for a reliable subscriber?"
REFUSED = "Which wine goes well with roast duck?"
SCALE = 1.5  # sharp on a fine screen


def ask(page: Page, question: str) -> None:
    """Ask, and wait for the reply."""
    page.locator("#question").fill(question)
    page.locator("#question").press("Enter")
    expect(page.locator(".question").last).to_have_text(question)
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=30_000)
    page.locator("#question").blur()


def show_title_page(page: Page) -> None:
    """What a reader sees first."""
    page.locator(".outline").wait_for()


def show_lesson(page: Page) -> None:
    """An answer, and beside it the lesson at the quoted words."""
    ask(page, ANSWERED)
    page.locator(".note .note-link").first.click()
    page.locator(".quoted").wait_for()


def show_answer(page: Page) -> None:
    """An answer with its notes in the margin."""
    ask(page, ANSWERED)


def show_refusal(page: Page) -> None:
    """What the book does not say."""
    ask(page, REFUSED)


def show_footnote(page: Page) -> None:
    """A citation on a phone."""
    ask(page, ANSWERED)
    page.locator("a.cite").first.click()
    page.locator(".footnote").wait_for()


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: what it shows, how wide and high, in which colours."""

    name: str
    show: Callable[[Page], None]
    width: int
    height: int
    colours: Literal["light", "dark"] = "light"


PICTURES = (
    Picture("page", show_lesson, 1280, 720),
    Picture("title-page", show_title_page, 1280, 800),
    Picture("answer-dark", show_answer, 1280, 620, "dark"),
    Picture("refusal", show_refusal, 1280, 800),
    Picture("phone", show_footnote, 390, 780),
)


def main() -> None:
    """Serve, and take every picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("take_pictures: no chromium on this machine")
    with serve_sample_book() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for picture in PICTURES:
            page = browser.new_page(
                viewport={"width": picture.width, "height": picture.height},
                device_scale_factor=SCALE,
                color_scheme=picture.colours,
                reduced_motion="reduce",
                locale="en-GB",
            )
            page.goto(address)
            picture.show(page)
            target = FOLDER / f"{picture.name}.png"
            page.screenshot(path=str(target))
            page.close()
            print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1000} kB")
        browser.close()


@contextmanager
def serve_sample_book() -> Iterator[str]:
    """The address of a server on the sample book, in a home that is removed at the end."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("LECTERN_", "OPENAI_"))
        }
        environment["LECTERN_HOME"] = home
        subprocess.run([LECTERN, "ingest", str(BOOK)], env=environment, check=True)
        server = subprocess.Popen([LECTERN, "serve", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = re.search(r"http://\S+", server.stdout.readline())
            if address is None:
                sys.exit("take_pictures: the server did not start")
            yield address.group()
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()


if __name__ == "__main__":
    main()
