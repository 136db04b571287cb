"""The reader's page in a real browser: what a cold load takes, and the main thread's work for each event of an answer.

    python benchmarks/page.py HOME [--slowdown 4] [--runs 3] [--json page.json]

HOME has a book indexed and no keys; it is copied. A scripted model writes 2,000 words, each claim gets its verdict. The
work of an event is its handler and the layout after it; that of the reply is done in pieces, and each is measured. The
longest event is that of the quickest run, because other programs that run at the same time only make it longer. Needs a
chromium on the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the scripted endpoint lives with the tests

from playwright.sync_api import Browser, Page, sync_playwright
from tests.answering.scripted import KEY, drafting
from tests.fakeai import Step, fake_ai
from tests.served import LECTERN, serving

WORDS = 2000
QUESTION = "What does a best effort publisher mean for a reliable subscriber?"
SENTENCES = (
    "Subscribers request, publishers offer; a best effort publisher never satisfies a reliable subscriber. [1]",
    "Transient local means that the publisher keeps its last messages for subscribers that arrive late. [2]",
    "The default is reliable, volatile, keep last 10. [2]",
)
MEASURED = """async () => {
    const { Turn } = await import("./shared/turn.js");
    const { AnswerText } = await import("./shared/answer.js");
    window.spent = [];
    const timed = (name, work, element) => {
        const start = performance.now();
        work();
        element.getBoundingClientRect();
        window.spent.push([name, performance.now() - start]);
    };
    const { show, finish } = Turn.prototype;
    Turn.prototype.show = function (name, data) { timed(name, () => show.call(this, name, data), this.element); };
    Turn.prototype.finish = function (reply) { timed("reply", () => finish.call(this, reply), this.element); };
    const { correct } = AnswerText.prototype;
    AnswerText.prototype.correct = async function (html) { // its pieces end with a timer
        const wait = window.setTimeout;
        let start = performance.now();
        const note = () => window.spent.push(["reply", performance.now() - start]);
        window.setTimeout = (done) => {
            note();
            return wait(() => {
                start = performance.now();
                done();
            });
        };
        await correct.call(this, html);
        note();
        window.setTimeout = wait;
    };
}"""
LOADED = """() => {
    const requests = performance.getEntriesByType("resource");
    const [page] = performance.getEntriesByType("navigation");
    return {
        first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0].startTime,
        interactive_ms: performance.getEntriesByName("interactive")[0].startTime,
        requests: requests.length + 1,
        bytes: requests.reduce((sum, each) => sum + each.transferSize, page.transferSize),
    };
}"""


def draft() -> str:
    """An answer of 2,000 words: paragraphs, lists and a listing."""
    paragraph = " ".join(SENTENCES) + "\n\n" + "\n".join(f"- {sentence}" for sentence in SENTENCES) + "\n\n"
    return paragraph * (WORDS // len(paragraph.split()) + 1) + "```python\nqos = QoSProfile(depth=10)\n```\n"


def slow_page(browser: Browser, address: str, slowdown: float) -> Page:
    """A fresh page, without anything in its cache, on a machine that is slower by this factor."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    page.goto(address)
    page.locator(".title-page h1").wait_for()
    return page


def load(browser: Browser, address: str, slowdown: float) -> dict[str, float]:
    """A cold load."""
    page = slow_page(browser, address, slowdown)
    page.locator(".outline").wait_for()
    figures: dict[str, float] = page.evaluate(LOADED)
    page.context.close()
    return figures


def stream(browser: Browser, address: str, slowdown: float) -> list[tuple[str, float]]:
    """The milliseconds of each event of an answer."""
    page = slow_page(browser, address, slowdown)
    page.evaluate(MEASURED)
    page.locator("#question").fill(QUESTION)
    page.locator("#question").press("Enter")
    page.locator(".turn.answer").wait_for(timeout=120_000)
    spent: list[tuple[str, float]] = page.evaluate("() => window.spent")
    page.context.close()
    return spent


def measure(home: Path, slowdown: float, runs: int) -> dict[str, Any]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder, fake_ai() as ai, sync_playwright() as playwright:
        shutil.copytree(home, Path(folder) / "home")
        ai.script(then=Step(say=drafting(draft())))
        model = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1", "OPENAI_MODEL": "scripted-model"}
        settings = {"LECTERN_HOME": str(Path(folder) / "home"), "LECTERN_RATE_LIMIT": "0", **model}
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
            loads = [load(browser, address, slowdown) for _ in range(runs)]
            streams = [stream(browser, address, 1) for _ in range(runs)]
        browser.close()
    names = ("block", "verdict", "reply")
    times = {name: [[spent for each, spent in events if each == name] for events in streams] for name in names}
    return {
        "load": {name: statistics.median(each[name] for each in loads) for name in loads[0]},
        "events": {
            name: {
                "count": len(spent[0]),
                "median_ms": statistics.median(spent[0]),
                "longest_ms": min(max(run, default=0.0) for run in spent),
            }
            for name, spent in times.items()
        },
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--slowdown", type=float, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    figures = measure(arguments.home, arguments.slowdown, arguments.runs)
    text = json.dumps(figures, indent=2)
    if arguments.json:
        arguments.json.write_text(f"{text}\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
