"""What audits of pages look at beside accessibility and speed: the head of each page, how its files are sent, what it
loads, and whether a thumb can use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response, expect

from tests.web.conftest import Complaints, needs_browser
from tests.web.reading import ANSWERED, ask

pytestmark = [pytest.mark.browser, needs_browser]
PAGES = ("/", "/desk/")
MIN_TEXT, MIN_TARGET = 12, 24  # CSS pixels
HEAD = """() => ({
    mode: document.compatMode, charset: document.characterSet, lang: document.documentElement.lang,
    title: document.title, description: document.querySelector("meta[name=description]")?.content || "",
    viewport: document.querySelector("meta[name=viewport]")?.content || "",
    icon: document.querySelector("link[rel=icon]")?.href || "",
})"""
SMALL_TEXT = """(least) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const small = [];
    while (walker.nextNode()) {
        const owner = walker.currentNode.parentElement;
        const isShown = walker.currentNode.data.trim() && owner.checkVisibility({ visibilityProperty: true });
        if (isShown && !owner.closest(".visually-hidden, math") && parseFloat(getComputedStyle(owner).fontSize) < least)
            small.push(owner.outerHTML.slice(0, 120));
    }
    return small;
}"""
# A target is large enough, or a circle of that size around its middle meets no other one; links within text are exempt.
SMALL_TARGETS = """(least) => {
    const shown = [...document.querySelectorAll("a[href], button, input, textarea, select, summary")]
        .filter((element) => element.checkVisibility({ visibilityProperty: true }))
        .filter((element) => !element.matches(".skip, p a, li a, td a"))
        .map((element) => ({ element, box: element.getBoundingClientRect() }))
        .filter(({ box }) => box.width && box.height);
    const middle = ({ box }) => [box.x + box.width / 2, box.y + box.height / 2];
    const meets = ([x, y], { box }) =>
        Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom)) < least / 2;
    return shown
        .filter(({ box }) => box.width < least || box.height < least)
        .filter((target) => shown.some((other) => other !== target && meets(middle(target), other)))
        .map(({ element }) => element.parentElement.outerHTML.slice(0, 300));
}"""
UNNAMED_LINKS = """() => [...document.querySelectorAll("a")]
    .filter((link) => !link.hasAttribute("href") || !(link.textContent.trim() || link.getAttribute("aria-label")))
    .map((link) => link.outerHTML.slice(0, 120))"""
UNNAMED_IMAGES = (
    """() => [...document.images].filter((image) => !image.hasAttribute("alt")).map((image) => image.src)"""
)


@pytest.fixture(params=PAGES)
def visited(
    browser: Browser, server: str, complaints: Complaints, request: pytest.FixtureRequest
) -> Iterator[tuple[Page, list[Response]]]:
    """A page on a phone, and everything that was loaded for it."""
    options: dict[str, Any] = {"locale": "en-GB", "viewport": {"width": 390, "height": 844}, "has_touch": True}
    context = browser.new_context(base_url=server, **options)
    page = context.new_page()
    complaints.watch(page)
    loaded: list[Response] = []

    def note(response: Response) -> None:  # playwright takes no method of a built-in type
        loaded.append(response)

    page.on("response", note)
    page.goto(request.param)
    page.wait_for_load_state("networkidle")
    expect(page.locator("h1:visible").first).to_be_visible()
    yield page, loaded
    context.close()
    assert complaints.unexpected() == []


def test_a_page_says_what_it_is(visited: tuple[Page, list[Response]]) -> None:
    """Its head has a language, a title, a description, an icon and a viewport that lets a reader zoom."""
    page, _ = visited
    head = page.evaluate(HEAD)

    assert (head["mode"], head["charset"], head["lang"]) == ("CSS1Compat", "UTF-8", "en")
    assert head["title"]
    assert 20 <= len(head["description"]) <= 160
    assert head["icon"]
    assert "width=device-width" in head["viewport"]
    assert not {"user-scalable", "maximum-scale"} & {part.split("=")[0].strip() for part in head["viewport"].split(",")}


def test_a_page_loads_its_own_small_files(visited: tuple[Page, list[Response]], server: str) -> None:
    """Everything comes from this server, whole, compressed if it is text, and with what a browser needs to ask later
    only whether it changed."""
    _, loaded = visited
    files = [response for response in loaded if response.request.resource_type in ("document", "script", "stylesheet")]

    assert {response.url.split("/", 3)[2] for response in loaded} == {server.split("/", 3)[2]}
    assert [response.url for response in loaded if response.status >= 400] == []
    assert files
    for response in files:
        headers = response.all_headers()
        assert headers["content-encoding"] in ("gzip", "br", "zstd"), response.url
        assert headers["etag"], response.url
        assert headers["x-content-type-options"] == "nosniff", response.url


def test_a_page_can_be_used_with_a_thumb(visited: tuple[Page, list[Response]]) -> None:
    """Text is large enough to read, and what is pressed is large enough or far enough from the next."""
    page, _ = visited

    assert page.evaluate(SMALL_TEXT, MIN_TEXT) == []
    assert page.evaluate(SMALL_TARGETS, MIN_TARGET) == []
    assert page.evaluate(UNNAMED_LINKS) == []
    assert page.evaluate(UNNAMED_IMAGES) == []


@pytest.mark.parametrize("options", [{"locale": "en-GB", "viewport": {"width": 390, "height": 844}}])
def test_an_answer_can_be_used_with_a_thumb(page: Page) -> None:
    """Its markers, notes, sources and buttons too."""
    ask(page, ANSWERED)

    assert page.evaluate(SMALL_TEXT, MIN_TEXT) == []
    assert page.evaluate(SMALL_TARGETS, MIN_TARGET) == []
    assert page.evaluate(UNNAMED_LINKS) == []
