"""Takes the README's picture: asks the running server (its address is the argument) two questions in a browser.

Needs a chromium on the machine; run `make run` first.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

TARGET = Path(__file__).resolve().parent.parent / "docs" / "img" / "page.png"
QUESTIONS = ("Why is a category 0 stop dangerous for a humanoid?", "Which wine goes well with roast duck?")


def main() -> None:
    """Ask, wait, take the picture."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 900, "height": 700}, device_scale_factor=1.5)
        page.goto(sys.argv[1])
        for number, question in enumerate(QUESTIONS, start=1):
            page.get_by_placeholder("Ask the book").fill(question)
            page.get_by_role("button", name="Ask").click()
            page.locator(".turn").nth(number - 1).wait_for()
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=str(TARGET))
        browser.close()


if __name__ == "__main__":
    main()
