"""The page in a real browser."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Page, Route, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine; .ci/run installs one"),
]
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def statuses() -> list[str]:
    """The statuses that a test makes the server answer with; the browser complains about them."""
    return ["503"]


@pytest.fixture
def page(server: str, statuses: list[str]) -> Iterator[Page]:
    """A fresh page of the served sample book; an error in its script or a blocked resource fails the test."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page()
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.goto(server)
        yield page
        browser.close()
    assert [complaint for complaint in complaints if not any(status in complaint for status in statuses)] == []


def ask(page: Page, question: str) -> None:
    """Type a question and send it."""
    page.get_by_placeholder("Ask the book").fill(question)
    page.get_by_role("button", name="Ask").click()


def test_a_server_without_keys_asks_for_none(page: Page, statuses: list[str]) -> None:
    """Where no key is needed there is no form for one; where the server wants one, the form appears."""
    statuses.append("401")
    expect(page.locator("#title")).to_have_text("Physical AI & Humanoid Robotics")
    expect(page.get_by_label("This server needs a key")).to_be_hidden()
    expect(page.get_by_role("button", name="New conversation")).to_be_hidden()

    refuse_without_key(page)

    expect(page.get_by_label("This server needs a key")).to_be_visible()


def test_a_question_shows_an_answer_whose_citation_opens_the_lesson(page: Page) -> None:
    """The answer has numbered citations, and the first one opens the lesson at the cited passage."""
    ask(page, "What does a best effort publisher mean for a reliable subscriber?")
    cite = page.locator(".answer a.cite").first
    expect(cite).to_be_visible(timeout=20_000)
    expect(cite).to_have_text("[1]")
    expect(page.locator("ol.sources li").first).to_be_visible()

    with page.context.expect_page() as opened:
        cite.click()

    expect(opened.value.locator(".piece.cited")).to_be_visible()


def test_what_the_book_does_not_say_shows_a_refusal(page: Page) -> None:
    """A refusal is plain, has no citation, and names lessons that come near."""
    ask(page, "Which wine goes well with roast duck?")

    expect(page.locator(".refusal .reply")).to_have_text(
        "I couldn't find that information in the book.", timeout=20_000
    )
    expect(page.locator("a.cite")).to_have_count(0)


def test_a_refusal_says_where_else_the_answer_is(page: Page) -> None:
    """A lesson outside the reader's filters comes before those that are merely near; another book is named."""

    def hidden(route: Route) -> None:
        whole = route.fetch()
        head, _, data = whole.text().rpartition("data: ")
        reply = json.loads(data.partition("\n")[0])
        lesson = {"title": "The gripper", "url": "/x", "parent_doc_id": str(uuid.uuid4())}
        reply |= {"outside_scope": [lesson], "other_books": ["cooking"]}
        body = f"{head}data: {json.dumps(reply)}\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    page.route("**/chat/stream", hidden)
    ask(page, "Which wine goes well with roast duck?")

    expect(page.locator(".refusal")).to_contain_text(
        "Outside your filters the book has it: The gripper", timeout=20_000
    )
    expect(page.locator(".refusal")).to_contain_text("Another book covers it: cooking")
    expect(page.locator(".refusal")).not_to_contain_text("Nearest lessons")


def test_an_error_keeps_the_question(page: Page) -> None:
    """When the server cannot be reached the reader is told, and the question is still there."""
    page.route("**/chat/stream", lambda route: route.fulfill(status=503, body='{"detail": "busy"}'))

    ask(page, "What is a node?")

    expect(page.get_by_role("alert")).to_contain_text("busy")
    expect(page.get_by_placeholder("Ask the book")).to_have_value("What is a node?")


def test_a_follow_up_goes_into_the_same_conversation(page: Page, server: str) -> None:
    """Two questions are one thread, a reload shows them again, and a new conversation begins empty."""
    ask(page, "What does a best effort publisher mean for a reliable subscriber?")
    expect(page.locator(".answer")).to_have_count(1, timeout=20_000)
    ask(page, "And what about durability?")
    expect(page.locator(".turn h2")).to_have_count(2, timeout=20_000)
    expect(page.locator("[aria-busy]")).to_have_count(0, timeout=20_000)
    thread = page.evaluate("sessionStorage.getItem('session')")

    page.reload()
    expect(page.locator(".turn h2")).to_have_count(2, timeout=20_000)
    page.get_by_role("button", name="New conversation").click()
    expect(page.locator(".turn")).to_have_count(0)

    stored_thread = httpx.get(f"{server}/threads/{thread}", timeout=20).json()
    assert stored_thread["turn_count"] == 2


def test_a_broken_stream_is_taken_up_again(page: Page) -> None:
    """When the connection breaks after the first event, the page resumes the run instead of asking again."""
    requests: list[str] = []
    page.on(
        "request",
        lambda request: requests.append(f"{request.method} {request.url}") if "/chat/" in request.url else None,
    )

    def cut(route: Route) -> None:
        whole = route.fetch()
        first = whole.text().partition("\n\n")[0] + "\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=first)

    page.route("**/chat/stream", cut)
    ask(page, "What does a best effort publisher mean for a reliable subscriber?")

    expect(page.locator(".answer a.cite").first).to_be_visible(timeout=20_000)
    assert [request_line.split()[0] for request_line in requests] == ["POST", "GET"]


WIDTHS = (320, 390, 768)  # a small phone, a usual one, a tablet
LONG_WORD = "get_parameters_from_the_transform_broadcaster_of_the_left_forearm_camera"
LONG_URL = f"https://example.org/{'docs/' * 30}index.html?query={'x' * 200}"
LONG_REPLY = f"""Call it like this: [1]

```python
transform = buffer.{LONG_WORD}(target="base_link", source="camera_left_forearm_optical_frame", timeout=0.25)
```

| {LONG_WORD} | reliability | durability | history | depth | deadline | lifespan |
|---|---|---|---|---|---|---|
| {LONG_WORD} | best effort | volatile | keep last | 10 | infinite | infinite |

See {LONG_URL} [1]"""
LONG_LESSON = {
    "title": f"The {LONG_WORD} lesson",
    "breadcrumb": f"Perception › {LONG_WORD} › The {LONG_WORD} lesson",
    "url": "/perception/forearm",
    "parent_doc_id": str(uuid.uuid4()),
    "chunk_id": "",
    "chunk_text": LONG_REPLY,
}
OVERFLOW = """() => [...document.querySelectorAll("body, body *")]
    .filter((shown) => shown.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)
    .map((shown) => `${shown.tagName}#${shown.id}.${shown.className}: ${shown.getBoundingClientRect().right}`)"""


def refuse_without_key(page: Page, _server: str = "") -> None:
    """The page of a server that wants a key."""
    detail = json.dumps({"detail": "this server needs a key"})
    page.route("**/books", lambda route: route.fulfill(status=401, body=detail))
    page.reload()
    expect(page.get_by_role("alert")).to_be_visible()


def reply_with(page: Page, **fields: object) -> None:
    """A question whose reply has these fields."""
    reply = {"should_answer": True, "response": "", "confidence_level": "high", "model": LONG_WORD, "sources": []}
    reply |= {"outside_scope": [], "nearest": [], "other_books": [], "session_id": str(uuid.uuid4())} | fields
    stream = f"event: reply\ndata: {json.dumps(reply)}\n\n"
    page.route("**/chat/stream", lambda route: route.fulfill(content_type="text/event-stream", body=stream))
    ask(page, f"How is {LONG_WORD} called?")
    expect(page.locator("[aria-busy]")).to_have_count(0)


def show_answer(page: Page, _server: str) -> None:
    """An answer with code, a table and a long address."""
    reply_with(page, response=LONG_REPLY, sources=[LONG_LESSON])


def show_refusal(page: Page, _server: str) -> None:
    """A refusal that names lessons and another book."""
    nearest = [LONG_LESSON] * 3
    reply_with(page, should_answer=False, response="I couldn't find it.", nearest=nearest, other_books=[LONG_WORD])


def show_failure(page: Page, _server: str) -> None:
    """A question that could not be answered."""
    page.route("**/chat/stream", lambda route: route.fulfill(status=503, body=json.dumps({"detail": LONG_URL})))
    ask(page, LONG_URL)
    expect(page.get_by_role("alert")).to_be_visible()


def show_lesson(page: Page, server: str) -> None:
    """The lesson view, at a cited passage."""
    chunks = [{"id": "first", "text": LONG_REPLY}, {"id": "second", "text": LONG_REPLY}]
    lesson = json.dumps(LONG_LESSON | {"chunks": chunks})
    page.route("**/lessons/*", lambda route: route.fulfill(content_type="application/json", body=lesson))
    page.goto(f"{server}/?lesson={LONG_LESSON['parent_doc_id']}#second")
    expect(page.locator(".piece.cited")).to_be_visible()


def show_two_books(page: Page, server: str) -> None:
    """A conversation where the reader chose between books with long titles."""
    books = [{"book_id": name, "title": f"{name}: {LONG_WORD}"} for name in ("one", "two")]
    page.route("**/books", lambda route: route.fulfill(content_type="application/json", body=json.dumps(books)))
    page.reload()
    expect(page.get_by_label("Book")).to_be_visible()
    show_answer(page, server)
    expect(page.get_by_role("button", name="New conversation")).to_be_visible()


def show_api(page: Page, server: str) -> None:
    """The description of the API, every answer unfolded."""
    page.goto(f"{server}/docs")
    expect(page.get_by_text("POST /chat/run", exact=True)).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")


STATES: dict[str, Callable[[Page, str], None]] = {
    "empty": lambda _page, _server: None,
    "answer": show_answer,
    "refusal": show_refusal,
    "failure": show_failure,
    "lesson": show_lesson,
    "two books": show_two_books,
    "key": refuse_without_key,
    "api": show_api,
}


@pytest.mark.parametrize("state", STATES)
def test_nothing_is_wider_than_a_phone(page: Page, server: str, statuses: list[str], state: str) -> None:
    """Whatever the page shows, a phone need not be scrolled sideways, and nothing is cut off."""
    statuses.append("401")
    STATES[state](page, server)

    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(OVERFLOW) == [], f"at {width} px"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
