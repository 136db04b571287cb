"""The page is there at once, also on a slow machine, and a long answer does not make it stutter."""

from __future__ import annotations

import threading

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.answering.scripted import drafting
from tests.fakeai import Step
from tests.web.conftest import ScriptedSite, needs_browser
from tests.web.reading import ANSWERED, ask, send, settled

pytestmark = [pytest.mark.browser, needs_browser]
SLOWDOWN, LOADS = 4, 3
INTERACTIVE_MS = 1000
MIN_STEPS = 12  # in which a long answer is drawn
MAX_BLOCKS = 2  # that an event draws: the one that ends, and the next
MAX_SHIFT = 0.02  # of what a browser sums up; 0.1 is called good
WORDS, SENTENCES = 2000, 8  # of an answer; of a paragraph


def work_of(cdp: CDPSession) -> float:
    """The milliseconds that the page's main thread has worked so far."""
    metrics = {each["name"]: each["value"] for each in cdp.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000


def test_the_page_is_there_at_once(browser: Browser, server: str) -> None:
    """What the main thread does until a reader can ask takes less than a second of a machine that is four times slower.
    The time of the processor counts, because other programs may run at the same time; benchmarks/page.py measures when
    something is painted, and when a reader can type."""
    works = []
    for _ in range(LOADS):
        context = browser.new_context()
        page = context.new_page()
        cdp = context.new_cdp_session(page)
        cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(server)
        page.wait_for_function("() => performance.getEntriesByName('interactive').length")
        works.append(work_of(cdp))
        context.close()

    assert 0 < min(works) * SLOWDOWN < INTERACTIVE_MS


COUNTED = """async () => {
    const { Turn } = await import("./shared/turn.js");
    const text = document.querySelector(".answer-text");
    window.drawn = [];
    const blocksOf = (changes) => new Set(changes.flatMap(({ addedNodes }) => [...addedNodes]).map((part) => {
        while (part.parentNode && part.parentNode !== text) part = part.parentNode;
        return part;
    })).size;
    const note = (name, changes) => changes.length && window.drawn.push([name, blocksOf(changes)]);
    const observer = new MutationObserver((changes) => note("later", changes));
    observer.observe(text, { childList: true, subtree: true });
    for (const name of ["show", "finish"]) {
        const work = Turn.prototype[name];
        Turn.prototype[name] = function (...given) {
            note("later", observer.takeRecords());
            work.apply(this, given);
            note(name, observer.takeRecords());
        };
    }
}"""  # the blocks that each event draws, also where several come at once
SCROLLED = """() => {
    const status = document.querySelector(".turn-status");
    const below = innerHeight - status.getBoundingClientRect().bottom;
    return Math.abs(below - parseFloat(getComputedStyle(status).bottom)) < 1;
}"""  # the page has followed the new question to its end
SHIFTS = """() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
        for (const { value, sources } of list.getEntries()) {
            window.shifts.push([value, sources.map(({ node }) => node?.className ?? String(node))]);
        }
    }).observe({ type: "layout-shift", buffered: false });
}"""


def long_draft() -> str:
    """An answer of 2,000 words in paragraphs, lists and listings."""
    sentence = "The publisher keeps its last messages for subscribers that arrive late. [1] "
    paragraphs = WORDS // (len(sentence.split()) * SENTENCES) + 1
    parts = [sentence * SENTENCES + "\n\n- One item of a list [1]\n- And another\n\n" for _ in range(paragraphs)]
    return "".join(parts) + "```python\nqos = QoSProfile(depth=10)\n```\n"


def test_a_long_answer_is_drawn_once(scripted: ScriptedSite, scripted_page: Page) -> None:
    """While 2,000 words arrive, an event draws the block that it is about, and the reply draws nothing again. What
    stands on the screen does not move. How long this takes is measured by benchmarks/page.py."""
    held = threading.Event()
    scripted.ai.script(Step(say=drafting(long_draft()), hold=held), then=Step(say=drafting(long_draft())))
    send(scripted_page, ANSWERED)
    expect(scripted_page.locator(".answer-text p").first).to_be_visible()
    status = scripted_page.locator(".turn-status")
    expect(status).to_be_in_viewport()
    scripted_page.wait_for_function(SCROLLED)
    scripted_page.evaluate(COUNTED)
    scripted_page.evaluate(SHIFTS)
    place = status.bounding_box()
    held.set()
    expect(scripted_page.locator(".answer-text figure.listing")).to_be_attached(timeout=20_000)
    moved = "(found, place) => found.map((each) => each.getBoundingClientRect()).filter(({ x, y }) => y !== place.y)"
    assert status.evaluate_all(moved, place) == []  # it may be gone by now
    settled(scripted_page)

    words = scripted_page.evaluate("() => document.querySelector('.answer-text').innerText.split(/\\s+/).length")
    drawn = scripted_page.evaluate("() => window.drawn")
    assert words >= WORDS
    assert len(drawn) > MIN_STEPS
    assert {name for name, _ in drawn} == {"show"}
    assert max(blocks for _, blocks in drawn) <= MAX_BLOCKS
    assert sum(value for value, _ in scripted_page.evaluate("() => window.shifts")) < MAX_SHIFT


def test_a_reply_that_changes_nothing_draws_nothing(page: Page) -> None:
    """The reply is compared block by block with what was streamed: only what differs is replaced."""
    ask(page, ANSWERED)
    kept = page.evaluate(
        """async () => {
            const { AnswerText } = await import("./shared/answer.js");
            const text = new AnswerText({ book: () => "" });
            const claim = "<span class='claim' data-claim='0'></span>";
            const blocks = ["<p>One</p>", `<p>Two ${claim}</p>`, "<ul><li>Three</li></ul>"];
            blocks.forEach((html, index) => text.block({ index, html }));
            const verdict = { claim: 0, verdict: "supported", evidence: "", reason: "", chunk_id: null, citations: [] };
            text.verdict(verdict);
            const before = [...text.element.children];
            text.finish({ html: blocks.join("\\n").replace("Three", "Four"), statements: [verdict] });
            const after = [...text.element.children];
            return after.map((element, place) => [element === before[place], element.textContent.trim()]);
        }"""
    )

    assert kept == [[True, "One"], [True, "Two"], [False, "Four"]]
    expect(page.locator(".turn.answer")).to_be_visible()


def test_a_reply_that_changes_much_is_drawn_in_pieces(page: Page) -> None:
    """Where the reply differs from what was streamed, the browser can do something else after a few blocks, and in the
    end nothing is left to be drawn."""
    pieces, texts = page.evaluate(
        """async () => {
            const { AnswerText } = await import("./shared/answer.js");
            const text = new AnswerText({ book: () => "" });
            const html = (word) => Array.from({ length: 20 }, (_, place) => `<p>${word} ${place}</p>`);
            html("streamed").forEach((block, index) => text.block({ index, html: block }));
            const pieces = [];
            const observer = new MutationObserver((changes) => pieces.push(changes.length));
            observer.observe(text.element, { childList: true });
            let now = 0;
            performance.now = () => (now += 5); // a slow machine: each block takes five milliseconds
            await text.correct(html("corrected").join("\\n"));
            text.finish({ html: html("corrected").join("\\n"), statements: [], should_answer: true });
            await null;
            return [pieces, [...text.element.children].map((block) => block.textContent)];
        }"""
    )

    assert texts == [f"corrected {place}" for place in range(20)]
    assert sum(pieces) == 20
    assert max(pieces) <= 2


def test_passages_are_drawn_when_they_are_unfolded(page: Page) -> None:
    """The notes of an answer hold their passages only after a reader has opened them."""
    turn = ask(page, ANSWERED)
    expect(turn.locator(".note .passage")).to_have_count(0)

    turn.locator(".note-title").first.click()

    expect(turn.locator(".note .passage")).to_have_count(1)
    expect(turn.locator(".note .passage")).to_contain_text("lost packets are sent again")
