"""Small things that a reader uses: tabs, listings, images, diagrams, hovering, filters, snippets, an empty server."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.served import LECTERN, serving
from tests.web.conftest import needs_browser
from tests.web.reading import ANSWERED, ask
from tests.web.test_finding import chat_bodies

pytestmark = [pytest.mark.browser, needs_browser]
BOOK = "physical-ai-robotics"


def open_lesson(page: Page, server: str, title: str) -> Locator:
    """Open a lesson of the sample book: its text."""
    outline = httpx.get(f"{server}/books/{BOOK}/outline", timeout=120).json()
    chapters = [chapter for module in outline["modules"] for chapter in module["chapters"]]
    lessons = {lesson["title"]: lesson["parent_doc_id"] for chapter in chapters for lesson in chapter["lessons"]}
    page.goto(f"/?book={BOOK}&lesson={lessons[title]}")
    expect(page.locator(".bar-title")).to_have_text(title)
    return page.locator(".lesson-body")


def test_tabs_are_switched_by_mouse_and_keys(page: Page, server: str) -> None:
    """One tab is shown at a time; arrows go from tab to tab."""
    body = open_lesson(page, server, "The ROS-Gazebo Bridge")
    tabs = body.get_by_role("tab")
    expect(tabs).to_have_text(["Command line", "YAML file", "Launch file"])
    expect(body.get_by_role("tabpanel")).to_have_count(1)

    tabs.nth(1).click()
    expect(tabs.nth(1)).to_have_attribute("aria-selected", "true")
    expect(body.get_by_role("tabpanel")).to_contain_text("ros_topic_name")
    tabs.nth(1).press("ArrowRight")
    expect(tabs.nth(2)).to_be_focused()
    expect(body.get_by_role("tabpanel", name="Launch file")).to_be_visible()
    tabs.nth(2).press("ArrowRight")
    expect(tabs.nth(0)).to_have_attribute("aria-selected", "true")


def test_a_listing_is_copied(page: Page, server: str) -> None:
    """The button takes the code as it is, and says that it did."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    listing = open_lesson(page, server, "Nodes and Topics").locator("figure.listing").first
    listing.get_by_role("button", name="Copy").click()

    expect(listing.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == listing.locator("pre").text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_image_of_the_book_is_shown(page: Page, server: str, scheme: str) -> None:
    """It is loaded from the book's folder; a drawing has a light ground in the dark, where it could not be seen."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of both
    image = open_lesson(page, server, "Coordinate Frames with tf2").locator("img").first

    expect(image).to_have_attribute("src", re.compile("^blob:"))
    expect(image).not_to_have_class("loading")
    assert image.evaluate("(image) => image.decode().then(() => image.naturalWidth)") > 0
    ground = image.evaluate("(image) => getComputedStyle(image).backgroundColor")
    assert ground == ("rgb(244, 241, 234)" if scheme == "dark" else "rgba(0, 0, 0, 0)")


def test_a_diagram_is_a_list_with_its_source_folded(page: Page, server: str) -> None:
    """What the diagram says can be read; its source unfolds."""
    diagram = open_lesson(page, server, "Nodes and Topics").locator(".diagram").first
    expect(diagram.locator("li").first).to_be_visible()
    expect(diagram.locator("pre")).to_be_hidden()

    diagram.get_by_text("The diagram as it is written").click()

    expect(diagram.locator("pre")).to_contain_text("flowchart LR")


def test_code_in_a_table_is_not_broken(page: Page, server: str) -> None:
    """A name stays on one line however narrow its cell is."""
    page.set_viewport_size({"width": 390, "height": 800})
    code = open_lesson(page, server, "Coordinate Frames with tf2").locator("td code", has_text="base_link").first

    assert code.evaluate("(code) => code.getClientRects().length") == 1


def test_a_lesson_without_a_conversation_leads_back_to_the_book(page: Page, server: str) -> None:
    """There is no conversation to go back to."""
    page.set_viewport_size({"width": 390, "height": 800})
    outline = httpx.get(f"{server}/books/{BOOK}/outline", timeout=120).json()
    page.goto(f"/?book={BOOK}&lesson={outline['modules'][0]['chapters'][0]['lessons'][0]['parent_doc_id']}")
    page.get_by_role("button", name="Back to the book").click()

    expect(page.locator(".title-page h1")).to_be_visible()


def test_hovering_a_marker_shows_its_note(page: Page) -> None:
    """The note of the marker under the mouse stands out, and no other."""
    turn = ask(page, ANSWERED)
    turn.locator("a.cite", has_text="2").first.hover()
    expect(turn.locator(".note.lit")).to_have_count(1)
    expect(turn.locator(".note.lit .note-number")).to_have_text("2")

    turn.locator(".question").hover()
    expect(turn.locator(".note.lit")).to_have_count(0)


def test_a_footnote_becomes_a_note_when_there_is_room(page: Page) -> None:
    """What was unfolded on a narrow screen is not there twice on a wide one."""
    page.set_viewport_size({"width": 390, "height": 800})
    turn = ask(page, ANSWERED)
    turn.locator("a.cite").first.click()
    expect(turn.locator(".footnote")).to_be_visible()

    page.set_viewport_size({"width": 1280, "height": 800})

    expect(turn.locator(".footnote")).to_have_count(0)
    expect(turn.locator("a.cite[aria-expanded='true']")).to_have_count(0)
    expect(turn.locator(".note").first).to_be_visible()


def test_every_filter_narrows_the_question(page: Page) -> None:
    """Levels, layer and chapters are sent, said on the answer, and cleared at once."""
    bodies = chat_bodies(page)
    page.get_by_role("button", name="Filters").click()
    layer = page.get_by_label("Layer").locator("option").nth(1).get_attribute("value")
    page.get_by_label("Layer").select_option(layer)
    page.get_by_label("From chapter").select_option("1")
    page.get_by_label("To chapter").select_option("2")
    page.get_by_label("A2").check()
    page.get_by_label("B1").check()
    expect(page.locator("#filters-toggle")).to_have_text(f"Level A2, B1 · Layer {layer} · Chapters 1–2")
    turn = ask(page, ANSWERED)

    sent = {name: bodies[0][name] for name in ("layer_filter", "chapter_min", "chapter_max", "proficiency_levels")}
    assert sent == {"layer_filter": layer, "chapter_min": 1, "chapter_max": 2, "proficiency_levels": ["A2", "B1"]}
    expect(turn.locator(".applied")).to_contain_text("Chapters 1–2")
    expect(page.locator("#filter-panel")).to_be_hidden()
    page.locator("#filters-toggle").click()
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#filters-toggle")).to_have_text("Filters")
    expect(page.get_by_role("button", name="Clear")).to_be_disabled()
    page.get_by_role("button", name="Close the filters").click()
    expect(page.locator("#filter-panel")).to_be_hidden()
    expect(page.locator("#filters-toggle")).to_be_focused()


def test_a_reader_can_follow_up_after_filters(page: Page) -> None:
    """Asking closes the filters, and the box keeps the focus."""
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("A2").check()
    ask(page, ANSWERED)

    expect(page.locator("#filter-panel")).to_be_hidden()
    expect(page.get_by_role("textbox", name="Your question")).to_be_focused()


def test_filters_leave_room_on_a_small_phone(page: Page) -> None:
    """They scroll in half of the screen, and the box for questions stays above them."""
    page.set_viewport_size({"width": 320, "height": 568})
    page.get_by_role("button", name="Filters").click()
    panel = page.locator("#filter-panel").bounding_box()

    assert panel
    assert panel["height"] <= 568 / 2
    expect(page.get_by_role("textbox", name="Your question")).to_be_in_viewport(ratio=1)
    page.get_by_label("C2").scroll_into_view_if_needed()
    expect(page.get_by_label("C2")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Close the filters")).to_be_in_viewport(ratio=1)


def test_a_small_phone_shows_what_to_ask(page: Page) -> None:
    """A long description leaves room for the first questions."""
    page.set_viewport_size({"width": 320, "height": 640})
    expect(page.locator(".suggestion").first).to_be_in_viewport(ratio=1)
    expect(page.locator(".suggestion").nth(1)).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize(
    ("markdown", "word", "expected"),
    [
        ("# Title\n\nA node is a process. It talks.", "node", "A node is a process. It talks."),
        ("Before.\n\n## Exercises\n\n1. Write a node.\n2. Run it.", "node", "Write a node. · Run it."),
        ("- one `topic`\n- two topics", "one", "one topic · two topics"),
        ("| A | B |\n|---|---|\n| x | node |\n| y | z |", "node", "A · B; x · node; y · z"),
        ("See [the node](../a/b.md) here.", "node", "See the node here."),
        ("Next: [the node](../a/b.md).", "node", "Next: the node."),
        ("**Node**: it computes.", "Node", "Node: it computes."),
        ("## Node types\n\nThere are two.", "Node", "Node types · There are two."),
        ("## The title above\n\nThere are two.", "title", "There are two."),
        ("word " * 40 + "node " + "tail " * 60, "node", "… " + "word " * 15 + "node " + "tail " * 30 + "…"),
        ("A sentence ends here. Then the node comes. " + "More of it. " * 40, "node", None),
    ],
)
def test_a_snippet_reads_like_prose(page: Page, markdown: str, word: str, expected: str | None) -> None:
    """Without Markdown's signs and without the titles above it, from the beginning of a sentence if one is near, with
    an ellipsis where it is cut."""
    at = markdown.index(word)
    text = page.evaluate(
        """async ([markdown, marks]) => {
            const { snippetOf } = await import("./page/snippet.js");
            const { parts } = snippetOf(markdown, marks, ["The title above"]);
            return parts.map((part) => part.textContent ?? part).join("");
        }""",
        [markdown, [[at, at + len(word)]]],
    )

    if expected is None:
        assert text.startswith("Then the node comes. More of it.")
        assert text.endswith("More of it.")
    else:
        assert " ".join(text.split()) == " ".join(expected.split())


def test_days_are_said_as_a_reader_says_them(page: Page) -> None:
    """Today and yesterday have their words, an earlier day its date, for a British reader with the day before the
    month; each conversation has its time."""
    asked = datetime.now(UTC)
    ask(page, ANSWERED)
    day = page.locator("#conversation-list h3").first
    for days, words in [(0, "Today"), (1, "Yesterday"), (3, re.compile(r"^\d{1,2} [A-Z][a-z]+( \d{4})?$"))]:
        page.clock.set_fixed_time(asked + timedelta(days=days))
        page.get_by_role("button", name="Conversations").click()
        expect(day).to_have_text(words)
        expect(page.locator(".conversation-item small").first).to_have_text(re.compile(r"^\d\d:\d\d · 1 question"))
        page.keyboard.press("Escape")


def test_a_server_without_a_book_says_how_to_add_one(browser: Browser, tmp_path: Path) -> None:
    """The page names the command and leads to the desk; what needs a book cannot be used."""
    with serving(
        [LECTERN, "serve", "--port", "0"], env={**os.environ, "LECTERN_HOME": str(tmp_path / "home")}
    ) as address:
        page = browser.new_page(locale="en-GB")
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        expect(page.get_by_text("No book is indexed yet.")).to_be_visible()
        expect(page.get_by_text("lectern ingest FOLDER")).to_be_visible()
        expect(page.get_by_role("button", name="Contents")).to_be_disabled()
        page.keyboard.press("/")
        expect(page.locator("dialog[open]")).to_have_count(0)

        page.get_by_role("link", name="For the author: the desk").click()
        expect(page.get_by_text("No book is indexed yet. Add one below")).to_be_visible()
        assert errors == []
        page.close()
