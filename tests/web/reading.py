"""What a reader does on the page."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

ANSWERED = "What does a best effort publisher mean for a reliable subscriber?"
REFUSED = "Which wine goes well with roast duck?"
OVERFLOW = """async () => {
    // what follows the width by a script does so in the next frame
    for (const _ of [1, 2]) await new Promise((done) => requestAnimationFrame(done));
    return [...document.querySelectorAll("body, body *")]
    .filter((shown) => !shown.closest(".visually-hidden, .skip, pre, .table, math"))
    .filter((shown) => shown.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map((shown) => `${shown.tagName}#${shown.id}.${shown.className}: ${shown.getBoundingClientRect().right}`);
}"""


def question_box(page: Page) -> Locator:
    """The box for questions."""
    return page.get_by_role("textbox", name="Your question")


def send(page: Page, question: str) -> None:
    """Type a question and send it."""
    question_box(page).fill(question)
    question_box(page).press("Enter")


def ask(page: Page, question: str) -> Locator:
    """Ask and wait for the reply: the turn."""
    before = page.locator(".turn").count()
    send(page, question)
    expect(page.locator(".turn")).to_have_count(before + 1)
    settled(page)
    return page.locator(".turn").last


def settled(page: Page) -> None:
    """Nothing is on its way."""
    expect(page.locator("[aria-busy]")).to_have_count(0)


def highlighted(page: Page) -> str:
    """The words that are marked in the lesson."""
    return str(page.evaluate("() => [...(CSS.highlights.get('quote') || [])].map(String).join(' ')"))
