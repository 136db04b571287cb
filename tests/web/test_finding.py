"""A reader narrows questions, finds conversations again, says what helped, and reads in their language."""

from __future__ import annotations

import re
from functools import partial

import httpx
import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.web.conftest import needs_browser
from tests.web.reading import ANSWERED, OVERFLOW, REFUSED, ask, settled

pytestmark = [pytest.mark.browser, needs_browser]


def chat_bodies(page: Page) -> list[dict[str, object]]:
    """The questions that the page sends, as they are sent."""
    bodies: list[dict[str, object]] = []

    def note(request: Request) -> None:
        if request.url.endswith("/chat/stream"):
            bodies.append(request.post_data_json)

    page.on("request", note)
    return bodies


def answer_with(value: object, route: Route) -> None:
    """Answer a request with JSON."""
    route.fulfill(json=value)


def test_the_title_page_says_what_to_ask(page: Page) -> None:
    """Title, description, questions to begin with and the contents; a suggested question is asked with one click."""
    expect(page.locator(".title-page h1")).to_have_text("Physical AI & Humanoid Robotics")
    expect(page.locator(".title-page .lead")).to_be_visible()
    expect(page.get_by_text("Contents: 38 lessons")).to_be_visible()
    question = page.locator(".suggestion").first.inner_text()

    page.locator(".suggestion").first.click()
    settled(page)

    expect(page.locator(".turn.answer .question")).to_have_text(question)


def test_filters_are_kept_with_the_conversation(page: Page) -> None:
    """Only filters with several values are offered; they apply to later questions, are shown on answers, and stay."""
    bodies = chat_bodies(page)
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Module").select_option("ros2")
    page.get_by_label("Hardware").select_option("2")
    turn = ask(page, ANSWERED)
    expect(turn.locator(".applied")).to_have_text("Up to tier 2 · The Robotic Nervous System")
    assert bodies[0]["module_filter"] == "ros2"
    assert bodies[0]["hardware_tier_filter"] == 2

    page.reload()
    expect(page.locator("#filters-toggle")).to_have_text("Up to tier 2 · The Robotic Nervous System")
    page.locator("#filters-toggle").click()
    page.get_by_label("Module").select_option("")
    turn = ask(page, "And what about durability?")

    assert bodies[1]["module_filter"] is None
    expect(turn.locator(".applied")).to_have_text("Up to tier 2")


def test_a_refusal_by_filters_can_be_asked_without_them(page: Page) -> None:
    """Where the filters hide the lesson that has it, the refusal says so, and one click asks without them."""
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("Module").select_option("vla")
    turn = ask(page, ANSWERED)
    expect(turn).to_have_class(re.compile("refusal"))

    turn.get_by_role("button", name="Ask without filters").click()
    settled(page)

    expect(page.locator(".turn").last).to_have_class(re.compile("answer"))
    expect(page.locator(".turn").last.locator(".applied")).to_have_count(0)


def test_conversations_are_found_again(page: Page) -> None:
    """The list is searched, and a conversation opens, is renamed, exported, shared and deleted."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, REFUSED)
    address = page.url
    page.get_by_role("button", name="New").click()
    ask(page, ANSWERED)
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("searchbox", name="Search your conversations").fill("roast duck")
    items = page.locator(".conversation-item")
    item = items.filter(has=page.locator(f"a[href*='{address.partition('thread=')[2]}']"))
    expect(item).to_be_visible()
    expect(items.filter(has_not_text="roast duck")).to_have_count(0)

    item.hover()
    item.get_by_role("button", name="Copy its link").click()
    expect(item.get_by_role("button", name="Link copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == address
    with page.expect_download() as download:
        item.get_by_role("button", name="Save as Markdown").click()
    assert download.value.suggested_filename == "Which-wine-goes-well-with-roast-duck.md"

    item.get_by_role("button", name="Rename").click()
    page.get_by_label("New title").fill("Duck and wine")
    page.get_by_label("New title").press("Enter")
    expect(item).to_contain_text("Duck and wine")

    item.get_by_role("link").click()
    expect(page.locator("#conversations")).to_be_hidden()
    expect(page).to_have_url(address)
    expect(page.locator(".question")).to_have_text(REFUSED)
    expect(page).to_have_title("Duck and wine · Physical AI & Humanoid Robotics")

    page.get_by_role("button", name="Conversations").click()
    item.hover()
    item.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Delete “Duck and wine” for good?")).to_be_visible()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(item).to_have_count(0)
    expect(page.locator(".title-page h1")).to_be_attached()


def test_a_search_without_a_match_says_so(page: Page) -> None:
    """Words that are in no conversation find none."""
    ask(page, ANSWERED)
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("searchbox", name="Search your conversations").fill("zebra crossing")

    expect(page.get_by_text("No conversation has these words.")).to_be_visible()


def test_a_book_in_german_speaks_german(page: Page) -> None:
    """The page's words follow the book's language."""

    def in_german(route: Route) -> None:
        details = route.fetch().json() | {"language": "de"}
        route.fulfill(json=details)

    page.route("**/books/physical-ai-robotics", in_german)
    page.reload()

    expect(page.locator("html")).to_have_attribute("lang", "de")
    box = page.get_by_role("textbox", name="Ihre Frage")
    expect(box).to_have_attribute("placeholder", "Fragen Sie das Buch …")
    expect(page.get_by_text("Fragen für den Anfang")).to_be_visible()
    box.fill(ANSWERED)
    box.press("Enter")
    settled(page)
    expect(page.locator(".turn").get_by_text(re.compile("^Das Buch behandelt dies"))).to_be_visible()
    page.get_by_role("button", name="Gespräche").click()
    expect(page.get_by_role("heading", name="Ihre Gespräche")).to_be_visible()
    page.set_viewport_size({"width": 320, "height": 800})
    assert page.evaluate(OVERFLOW) == []


def test_of_several_books_the_reader_chooses(page: Page) -> None:
    """With two books the title page has a choice, and the address names the book."""
    details = {"description": "", "language": "en", "lessons": 0, "suggestions": []}
    filters = {"hardware_tiers": [], "proficiency_levels": [], "layers": [], "modules": [], "chapters": []}
    books = [{"book_id": name, "title": f"The book {name}", "default": name == "one"} for name in ("one", "two")]
    page.route("**/books", lambda route: route.fulfill(json=books))
    for book in books:
        outline = {"book_id": book["book_id"], "title": book["title"], "modules": []}
        whole = {**book, **details, "filters": filters}
        page.route(f"**/books/{book['book_id']}", partial(answer_with, whole))
        page.route(f"**/books/{book['book_id']}/outline", partial(answer_with, outline))
    page.reload()
    expect(page.locator(".title-page h1")).to_have_text("The book one")
    expect(page.get_by_role("button", name="Filters")).to_be_hidden()

    page.get_by_role("combobox", name="Book").select_option("two")

    expect(page.locator(".title-page h1")).to_have_text("The book two")
    expect(page).to_have_url(re.compile(r"\?book=two$"))


def test_a_thumb_down_says_why(page: Page, server: str) -> None:
    """A rating is stored with its turn and its reason, is shown again, and a second click takes it back."""
    ask(page, REFUSED)
    turn = ask(page, ANSWERED)
    down = turn.get_by_role("button", name="This did not help")
    down.click()
    turn.get_by_label("Something is missing").check()
    turn.get_by_label("Anything to add?").fill("The depth is missing.")
    turn.get_by_role("button", name="Send").click()
    expect(turn.get_by_text("Thank you.")).to_be_visible()
    export = f"{server}/threads/{page.url.partition('thread=')[2]}/export"
    first, second = (stored["feedback"] for stored in httpx.get(export, timeout=120).json()["turns"])
    assert first is None
    rating = {name: second[name] for name in ("rating", "reason", "comment")}
    assert rating == {"rating": "down", "reason": "incomplete", "comment": "The depth is missing."}

    page.reload()
    expect(down).to_have_attribute("aria-pressed", "true")
    down.click()
    expect(down).to_have_attribute("aria-pressed", "false")

    assert [stored["feedback"] for stored in httpx.get(export, timeout=120).json()["turns"]] == [None, None]


def test_colours_follow_the_system_or_the_reader(page: Page) -> None:
    """Dark as the system says, until the reader chooses; the choice stays."""
    ground = "() => getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Colours: as the system").click()
    light = page.evaluate(ground)
    assert light != dark

    page.reload()
    expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
    assert page.evaluate(ground) == light
    page.get_by_role("button", name="Colours: light").click()
    assert page.evaluate(ground) == dark
