"""Takes the README's picture, docs/img/page.png: serves the sample book and asks, in a browser, a question that the
book answers and one that it does not. Needs a chromium on the machine; `make picture` runs it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "examples" / "physical-ai-robotics"
TARGET = ROOT / "docs" / "img" / "page.png"
LECTERN = str(Path(sys.executable).with_name("lectern"))
ANSWERED = "How long does a team need for the capstone project?"
REFUSED = "Which wine goes well with roast duck?"
WIDTH, HEIGHT, SCALE = 900, 620, 1.5  # sharp on a fine screen, and below 200 kB


def main() -> None:
    """Serve, ask, take the picture."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("take_picture: no chromium on this machine")
    with serve_sample_book() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE, color_scheme="light"
        )
        page.goto(address)
        for question, outcome in ((ANSWERED, ".answer"), (REFUSED, ".refusal")):
            page.get_by_placeholder("Ask the book").fill(question)
            page.get_by_role("button", name="Ask").click()
            page.locator(outcome).wait_for()
        page.evaluate("window.scrollTo(0, 0); document.activeElement.blur()")
        page.screenshot(path=str(TARGET))
        browser.close()
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size // 1000} kB")


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
                sys.exit("take_picture: the server did not start")
            yield address.group()
        finally:
            server.send_signal(signal.SIGINT)
            server.communicate()


if __name__ == "__main__":
    main()
