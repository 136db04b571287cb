"""Every state of the page fits a phone, has no accessibility finding, and can be used by keyboard alone."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.conftest import Complaints, needs_browser
from tests.web.reading import ANSWERED, OVERFLOW, REFUSED, ask, question_box, send, settled

pytestmark = [pytest.mark.browser, needs_browser]
ROOT = Path(__file__).resolve().parent.parent.parent
WIDTHS = (320, 390, 768, 1280, 1920)
PROBLEMS = ["401", "429", "503", "ERR_INTERNET_DISCONNECTED"]  # that states have
LONG_WORD = "get_parameters_from_the_transform_broadcaster_of_the_left_forearm_camera"
LONG_URL = f"https://example.org/{'docs/' * 30}index.html?query={'x' * 200}"
LONG_HTML = f"""<p>Call it like this: <a class="cite" data-source="1" href="#source-1">1</a> {LONG_URL}
<span class="claim" data-claim="0"></span></p>
<figure class="listing" data-language="python"><pre><code>transform = buffer.{LONG_WORD}(target="base_link",
source="camera_left_forearm_optical_frame", timeout=0.25)</code></pre></figure>
<div class="table" tabindex="0"><table><thead><tr><th>{LONG_WORD}</th><th>reliability</th><th>durability</th></tr>
</thead><tbody><tr><td>{LONG_WORD}</td><td>best effort</td><td>{LONG_WORD}</td></tr></tbody></table></div>
<div class="tabs"><section class="tab" data-label="Linux"><p>{LONG_WORD}</p></section><section class="tab"
data-label="{LONG_WORD}"><p>other</p></section></div>
<aside class="admonition warning"><p class="admonition-title">{LONG_WORD}</p><p>{LONG_URL}</p></aside>
<ul><li><span class="task done"></span>{LONG_WORD}</li></ul>
<math display="block"><mi>x</mi><mo>=</mo><mtext>{LONG_WORD * 2}</mtext></math>
<p><code>{LONG_WORD}</code></p>"""
SOURCE = {
    "number": 1,
    "page_title": f"The {LONG_WORD} lesson",
    "section": LONG_WORD,
    "breadcrumb": f"Perception › {LONG_WORD} › The {LONG_WORD} lesson",
    "url": "/perception/forearm",
    "parent_doc_id": str(uuid.uuid4()),
    "chunk_id": "first",
    "chunk_text": LONG_WORD,
    "line_start": 3,
    "line_end": 4,
    "html": LONG_HTML,
}
STATEMENT = {
    "text": LONG_WORD,
    "start": 0,
    "end": 9,
    "citations": [1],
    "verdict": "doubtful",
    "support": 0.1,
    "evidence": LONG_URL,
    "chunk_id": "first",
    "reason": f"The passage has {LONG_WORD}.",
}


def reply_with(page: Page, **fields: object) -> None:
    """A question whose reply has these fields."""
    reply = {"should_answer": True, "response": "", "html": LONG_HTML, "confidence_level": "high", "model": LONG_WORD}
    reply |= {
        "sources": [],
        "statements": [],
        "outside_scope": [],
        "nearest": [],
        "other_books": [],
        "filters": {},
        "suggestions": [],
    }
    reply |= {"session_id": str(uuid.uuid4()), "book_id": "physical-ai-robotics", "metrics": {"num_chunks": 3}} | fields
    stream = f"event: reply\ndata: {json.dumps(reply)}\n\n"
    page.route("**/chat/stream", lambda route: route.fulfill(content_type="text/event-stream", body=stream))
    ask(page, f"How is {LONG_WORD} called?")


def show_empty(page: Page) -> None:
    """The title page with its outline."""
    expect(page.locator(".outline")).to_be_visible()


def show_answer(page: Page) -> None:
    """An answer with everything that Markdown has, its notes, flags and reasons unfolded."""
    reply_with(page, sources=[SOURCE], statements=[STATEMENT])
    page.get_by_role("button", name="Doubtful: show why").first.click()
    page.locator(".note-title").click()
    page.locator(".confidence summary").click()


def show_short_answer(page: Page) -> None:
    """An answer of the sample book."""
    ask(page, ANSWERED)


def show_pending(page: Page) -> None:
    """A question on its way."""
    page.route("**/chat/stream", lambda _: None)
    send(page, LONG_URL)
    expect(page.get_by_text("Looking in the book")).to_be_visible()


def show_refusal(page: Page) -> None:
    """A refusal that names lessons and another book."""
    lessons = [{"title": SOURCE["page_title"], "url": "/x", "parent_doc_id": SOURCE["parent_doc_id"]}]
    text = {"should_answer": False, "html": "<p>I couldn't find it.</p>", "response": "I couldn't find it."}
    reply_with(page, **text, outside_scope=lessons, nearest=lessons, other_books=[LONG_WORD])


def show_short_refusal(page: Page) -> None:
    """A refusal of the sample book."""
    ask(page, REFUSED)


def show_failure(page: Page) -> None:
    """A question that could not be answered."""
    page.route("**/chat/stream", lambda route: route.fulfill(status=503, body=json.dumps({"detail": LONG_URL})))
    send(page, LONG_URL)
    expect(page.get_by_role("alert")).to_be_visible()


def show_limit(page: Page) -> None:
    """A question after too many, with the countdown."""
    body = json.dumps({"detail": "slow down"})
    page.route("**/chat/stream", lambda route: route.fulfill(status=429, headers={"Retry-After": "60"}, body=body))
    send(page, ANSWERED)
    expect(page.get_by_role("button", name="Try again")).to_be_disabled()


def show_lost_server(page: Page) -> None:
    """A question that waits for the server."""
    expect(page.locator(".outline")).to_be_visible()
    page.context.set_offline(True)
    send(page, ANSWERED)
    expect(page.locator("#notice.lost")).to_be_visible()


def show_passage(page: Page) -> None:
    """Words of an answer that are selected, and others that the next question is about."""
    turn = ask(page, ANSWERED)
    turn.locator(".answer-text p").first.select_text()
    page.get_by_role("button", name="Ask about this", exact=True).click()
    expect(page.locator("#passage-text")).to_be_visible()
    turn.locator(".answer-text li").first.select_text()
    expect(page.get_by_role("button", name="Ask about this", exact=True)).to_be_visible()


def show_lesson(page: Page) -> None:
    """A lesson of the sample book beside an answer, with its headings unfolded."""
    turn = ask(page, ANSWERED)
    turn.locator(".note .note-link").first.click()
    page.get_by_text("In this lesson").click()
    expect(page.locator(".quoted")).to_be_visible()


def show_long_lesson(page: Page) -> None:
    """A lesson with everything that Markdown has."""
    heading = {"level": 2, "title": LONG_WORD, "anchor": "a"}
    lesson = {
        **SOURCE,
        "title": LONG_WORD,
        "book_id": "physical-ai-robotics",
        "from": "index",
        "headings": [heading] * 3,
    }
    neighbour = {"parent_doc_id": SOURCE["parent_doc_id"], "title": LONG_WORD}
    lesson |= {"from": "index", "chunks": [], "previous": neighbour, "next": neighbour, "url": LONG_URL}
    page.route("**/lessons/*/page?*", lambda route: route.fulfill(json=lesson))
    page.goto(f"/?lesson={SOURCE['parent_doc_id']}")
    page.get_by_text("In this lesson").click()


def show_filters(page: Page) -> None:
    """The filters of the sample book."""
    page.get_by_role("button", name="Filters").click()
    expect(page.get_by_label("Module")).to_be_visible()


def show_footnote(page: Page) -> None:
    """A citation unfolded on a phone, and the form of a rating."""
    page.set_viewport_size({"width": 390, "height": 800})
    turn = ask(page, ANSWERED)
    turn.locator("a.cite").first.click()
    turn.get_by_role("button", name="This did not help").click()
    expect(turn.get_by_label("Something is missing")).to_be_visible()


def show_conversations(page: Page) -> None:
    """The list of conversations."""
    ask(page, ANSWERED)
    page.get_by_role("button", name="Conversations").click()
    expect(page.locator(".conversation-item").first).to_be_visible()


def show_renaming(page: Page) -> None:
    """A conversation that gets another title."""
    show_conversations(page)
    page.locator(".conversation-item").first.hover()
    page.locator(".conversation-item").first.get_by_role("button", name="Rename").click()
    expect(page.get_by_label("New title")).to_be_visible()


def show_deleting(page: Page) -> None:
    """The question whether a conversation is to be deleted."""
    show_conversations(page)
    page.locator(".conversation-item").first.hover()
    page.locator(".conversation-item").first.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alertdialog")).to_be_visible()


def show_search(page: Page) -> None:
    """The contents with results beside them."""
    page.get_by_role("button", name="Contents").click()
    page.get_by_role("searchbox", name="Search the book").fill("transient local")
    expect(page.locator(".result").first).to_be_visible()


def show_key(page: Page) -> None:
    """The page of a server that wants a key."""
    detail = json.dumps({"detail": "this server needs a key"})
    page.route("**/books", lambda route: route.fulfill(status=401, body=detail))
    page.reload()
    expect(page.get_by_label("This server needs a key")).to_be_visible()


def show_api(page: Page) -> None:
    """The description of the API, every answer unfolded."""
    page.goto("/docs")
    expect(page.get_by_text("POST /chat/run", exact=True)).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")


STATES: dict[str, Callable[[Page], None]] = {
    "empty": show_empty,
    "answer": show_answer,
    "short answer": show_short_answer,
    "pending": show_pending,
    "refusal": show_refusal,
    "short refusal": show_short_refusal,
    "failure": show_failure,
    "limit": show_limit,
    "lost server": show_lost_server,
    "passage": show_passage,
    "lesson": show_lesson,
    "long lesson": show_long_lesson,
    "filters": show_filters,
    "footnote": show_footnote,
    "conversations": show_conversations,
    "renaming": show_renaming,
    "deleting": show_deleting,
    "search": show_search,
    "key": show_key,
    "api": show_api,
}


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_wider_than_its_screen(page: Page, complaints: Complaints, state: str) -> None:
    """Whatever the page shows, no screen needs to be scrolled sideways, and nothing is cut off."""
    complaints.expected += PROBLEMS
    STATES[state](page)

    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(OVERFLOW) == [], f"at {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def axe_source() -> str:
    """The text of axe-core, which is no part of the project."""
    places = [os.environ.get("AXE_CORE", ""), str(ROOT / ".cache" / "node_modules" / "axe-core" / "axe.min.js")]
    file = next((Path(place) for place in places if place and Path(place).is_file()), None)
    if file is None:
        pytest.skip("no axe-core: name its axe.min.js in AXE_CORE, or npm install --prefix .cache axe-core")
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(page: Page, complaints: Complaints, state: str, scheme: str) -> None:
    """axe-core has no finding in any state, in light and in dark, on a phone and on a wide screen."""
    source = axe_source()
    complaints.expected += PROBLEMS
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    STATES[state](page)

    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(source)
        found = page.evaluate("async () => (await axe.run()).violations")
        assert [(rule["id"], [each["html"] for each in rule["nodes"]]) for rule in found] == [], f"at {width} px"


STATUS_IS_ABOVE = """() => {
    const status = document.querySelector(".turn-status").getBoundingClientRect();
    return status.height > 0 && status.bottom <= document.querySelector(".ask-line").getBoundingClientRect().top;
}"""


@pytest.mark.parametrize("width", [320, 1280])
def test_the_status_of_an_answer_does_not_cover_the_box(page: Page, width: int) -> None:
    """However high the box for questions is, what is going on is said above it."""
    page.set_viewport_size({"width": width, "height": 800})
    page.route("**/chat/stream", lambda _: None)
    send(page, ANSWERED)
    expect(page.locator(".turn-status")).to_be_visible()
    page.wait_for_function(STATUS_IS_ABOVE)

    question_box(page).fill("And a question\nof several\nlines?")

    page.wait_for_function(STATUS_IS_ABOVE)


def test_a_reader_needs_no_mouse(page: Page) -> None:
    """By keyboard alone: skip to the box, ask, reach a note, open and close the contents."""
    expect(page.locator(".title-page h1")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(question_box(page)).to_be_focused()
    page.keyboard.type(ANSWERED)
    page.keyboard.press("Enter")
    settled(page)

    page.locator("a.cite").first.focus()
    expect(page.locator(".note.lit")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".note.open")).to_have_count(1)

    page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search the book")
    expect(search).to_be_focused()
    page.keyboard.type("transient local")
    expect(page.locator(".result").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".result a").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(search).to_be_hidden()
