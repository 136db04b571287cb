"""A reader opens a lesson: at the quoted words, beside the conversation, and asks about what it says."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import needs_browser
from tests.web.reading import ANSWERED, REFUSED, ask, highlighted, question_box, settled

pytestmark = [pytest.mark.browser, needs_browser]
QUOTED = "Subscribers request, publishers offer; a best effort publisher never satisfies a reliable subscriber"
CITED = "Reliable means that lost packets are sent again"  # the first sentence of the answer
SELECT = """(element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = document.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
}"""


def open_first_note(page: Page) -> None:
    """Ask, and open the lesson of the first citation."""
    turn = ask(page, ANSWERED)
    turn.locator(".note .note-link").first.click()
    expect(page.locator(".lesson-body h1, .lesson-page > h1")).to_have_text("Quality of Service")
    expect(page.locator(".quoted")).to_be_in_viewport()  # the lesson was scrolled, and does not move any more


def test_a_citation_opens_its_lesson_at_the_quoted_words(page: Page) -> None:
    """The lesson is beside the conversation, scrolled to the words that the answer rests on, and marks them."""
    open_first_note(page)

    expect(page.locator(".turn.answer")).to_be_visible()
    assert highlighted(page).startswith(CITED)
    expect(page.locator(".quoted")).to_be_in_viewport()
    expect(page.locator(".lesson-body table").first).to_be_attached()


def test_each_marker_leads_to_the_words_of_its_claim(page: Page) -> None:
    """Several sentences cite one passage: a marker shows what its own sentence rests on, and the lesson marks that."""
    turn = ask(page, ANSWERED)
    sentence = "Transient local means that the publisher keeps its last messages"
    note = turn.locator(".note[data-source='1']")
    expect(note.locator(".note-gist")).to_contain_text(CITED)

    turn.locator("p", has_text=sentence).first.locator("a.cite").nth(2).click()

    expect(note.locator(".note-gist")).to_contain_text("Transient local")
    note.locator(".note-link").click()
    expect(page.locator(".quoted")).to_be_in_viewport()
    assert highlighted(page).startswith("Transient local means")


def test_on_a_phone_a_footnote_comes_into_view(page: Page) -> None:
    """A marker at the end of the screen is no dead end: what it unfolds is scrolled to, above the box for questions."""
    page.set_viewport_size({"width": 390, "height": 800})
    turn = ask(page, ANSWERED)
    turn.locator("a.cite").last.evaluate("(marker) => { marker.scrollIntoView({ block: 'end' }); marker.click(); }")

    expect(turn.locator(".footnote").get_by_role("button", name="Read in the lesson")).to_be_in_viewport(ratio=1)


def test_the_address_of_a_quote_marks_it_again(page: Page) -> None:
    """A reload, or the address in another tab, shows the same lesson beside the same conversation at the same lines."""
    open_first_note(page)
    expect(page).to_have_url(re.compile(r"\?thread=.+&lesson=.+&lines=\d+-\d+$"))

    other = page.context.new_page()
    other.goto(page.url)

    expect(other.locator(".turn.answer")).to_be_visible()
    expect(other.locator(".quoted")).to_be_in_viewport()
    expect(other.locator(".quoted")).to_contain_text(CITED)


def test_the_address_of_a_lesson_on_its_site_opens_it(page: Page, server: str) -> None:
    """A book that is published nowhere is read here: at the heading that the address names; the first page, whose
    address is that of the page itself, by its anchor."""
    page.goto(f"{server}/module-1-ros2/chapter-1-ros-graph/quality-of-service#compatibility")
    expect(page.locator(".lesson-body h1, .lesson-page > h1")).to_have_text("Quality of Service")
    expect(page.locator("#compatibility")).to_be_in_viewport()

    page.goto(f"{server}/#what-you-build")
    expect(page.locator(".lesson-body h1, .lesson-page > h1")).to_have_text("Physical AI & Humanoid Robotics")
    expect(page.locator("#what-you-build")).to_be_in_viewport()

    page.goto(f"{server}/?at=%2Fno%2Fsuch%2Flesson")
    expect(page.get_by_text("The book has no such lesson.")).to_be_visible()


def test_back_closes_a_lesson_and_forward_opens_it(page: Page) -> None:
    """The lesson is a step in the history; closing it leaves the conversation as it was."""
    open_first_note(page)
    page.go_back()
    expect(page.locator("#lesson")).to_be_hidden()
    expect(page.locator(".turn.answer")).to_be_visible()
    page.go_forward()
    expect(page.locator(".quoted")).to_be_in_viewport()
    page.get_by_role("button", name="Close the lesson").click()
    expect(page.locator("#lesson")).to_be_hidden()
    expect(page.locator(".turn")).to_have_count(1)


def test_a_lesson_takes_the_whole_phone(page: Page) -> None:
    """On a narrow screen the lesson takes the conversation's place, and a button leads back."""
    page.set_viewport_size({"width": 390, "height": 800})
    turn = ask(page, ANSWERED)
    turn.locator("a.cite").first.click()
    turn.locator(".footnote").get_by_role("button", name="Read in the lesson").click()

    expect(page.locator(".quoted")).to_be_in_viewport()
    expect(page.locator(".turn")).to_be_hidden()
    page.get_by_role("button", name="Back to the conversation").click()
    expect(page.locator(".turn")).to_be_visible()


def test_a_reader_turns_pages_and_jumps_to_headings(page: Page) -> None:
    """Previous and next lesson, the headings of a lesson, and links between lessons stay on the page."""
    open_first_note(page)
    page.get_by_text("In this lesson").click()
    page.locator(".in-lesson a", has_text="Which policies are there?").click()
    expect(page.locator(".lesson-body h2", has_text="Which policies are there?")).to_be_in_viewport()
    expect(page).to_have_url(re.compile("#which-policies-are-there$"))

    page.locator(".turn-page.prev").click()
    expect(page.locator(".bar-title")).to_have_text("Services, Actions and Parameters")
    page.get_by_role("button", name="Next lesson: Quality of Service").click()
    expect(page.locator(".bar-title")).to_have_text("Quality of Service")


def test_a_selection_becomes_a_question(page: Page) -> None:
    """Selected words can be asked about; the question names them, and the answer comes into the conversation."""
    open_first_note(page)
    quoted = page.locator(".lesson-body li", has_text=QUOTED)
    quoted.scroll_into_view_if_needed()
    quoted.evaluate(SELECT)
    page.get_by_role("button", name="Ask about this").click()

    expect(page.locator("#passage-text")).to_contain_text(QUOTED)
    expect(question_box(page)).to_be_focused()
    question_box(page).press_sequentially("What does this mean for a camera?")
    question_box(page).press("Enter")
    settled(page)

    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".question").last).to_contain_text(QUOTED)
    expect(page.locator(".question").last).to_contain_text("What does this mean for a camera?")


def test_a_selection_becomes_a_question_on_a_phone(page: Page) -> None:
    """The conversation takes the lesson's place again, and the reader can type at once."""
    open_first_note(page)
    page.set_viewport_size({"width": 390, "height": 800})
    quoted = page.locator(".lesson-body li", has_text=QUOTED)
    quoted.scroll_into_view_if_needed()
    quoted.evaluate(SELECT)
    page.get_by_role("button", name="Ask about this").click()

    expect(page.locator("#passage-text")).to_be_in_viewport(ratio=1)
    expect(question_box(page)).to_be_focused()
    expect(page.locator("#lesson")).to_be_hidden()


def test_a_refusals_nearest_lesson_opens(page: Page) -> None:
    """The lessons that a refusal offers open beside it."""
    turn = ask(page, REFUSED)
    link = turn.locator(".lesson-list a").first
    title = link.inner_text()

    link.click()

    expect(page.locator(".bar-title")).to_have_text(title)


def test_the_contents_open_a_lesson(page: Page) -> None:
    """The title page lists the lessons, and each opens without a conversation."""
    page.locator(".outline a", has_text="URDF and Xacro").click()

    expect(page.locator(".bar-title")).to_have_text("URDF and Xacro")
    expect(page).to_have_url(re.compile(r"\?book=physical-ai-robotics&lesson=[0-9a-f-]{36}$"))


def test_search_finds_while_typing(page: Page) -> None:
    """Results come with the words marked, the outline shows where they are, and a result opens its lesson there."""
    page.get_by_role("button", name="Contents").click()
    page.get_by_role("searchbox", name="Search the book").press_sequentially("transient local")

    expect(page.locator(".result mark").first).to_be_visible()
    expect(page.locator("#outline a.found", has_text="Quality of Service")).to_be_visible()
    page.locator(".result a").first.click()
    expect(page.locator("#contents")).to_be_hidden()
    expect(page.locator(".bar-title")).to_have_text("Quality of Service")
    expect(page.locator(".quoted").first).to_be_in_viewport()
