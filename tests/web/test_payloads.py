"""Nothing that a book, a model, a reader or a server says runs in a real browser."""

from __future__ import annotations

import json
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from lectern.rendering.answers import answer_html
from lectern.rendering.passages import passage_html
from tests.lesson_pages import page_of
from tests.unit.payloads import PAYLOADS, PLACES, VECTORS
from tests.unit.test_answer_payloads import DRAFTS, blocks_cut_at
from tests.unit.test_lesson_payloads import lessons_with, lessons_with_payloads
from tests.web.conftest import Complaints, needs_browser
from tests.web.reading import send
from tests.web.test_finding import answer_with

pytestmark = [pytest.mark.browser, needs_browser]
BOOK = "physical-ai-robotics"
MIN_PAYLOADS = 300
# what a browser would run, load or send: elements, handlers, and addresses other than links of the web
ACTIVE = """(root) => [...root.querySelectorAll("*")].filter((part) =>
    part.matches("script:not([src^='page/']), style, iframe, object, embed, base, meta[http-equiv], animate, video") ||
    (part.matches("img[src]") && !/^blob:/.test(part.getAttribute("src"))) ||
    [...part.attributes].some(({ name, value }) =>
        /^on|^srcdoc$/.test(name) ||
        (name === "style" && !/^(top|height|max-width|--)/.test(value)) ||
        (/^(src|href|action|xlink:href)$/.test(name) && /^[\\s\\x00-\\x1f]*(javascript|data|vbscript):/i.test(value)))
).map((part) => part.outerHTML.slice(0, 300))"""
FOUND = f"""() => {{
    document.body.innerHTML = "<img src=x><b onclick=a></b><a href='javascript:a'></a>";
    return ({ACTIVE})(document.body).length;
}}"""


def test_rendered_payloads_are_inert_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    """Lessons, quotes and drafts with every payload in every place, set as HTML in a page without any policy: the
    browser finds nothing active in them, and nothing runs."""
    texts = [html for vector in PAYLOADS for html in (answer_html(vector, sources=2), passage_html(vector))]
    for vector in PAYLOADS:
        drafts = [draft.format(vector, vector) for draft in DRAFTS.values()]
        texts += [html for draft in drafts for html in blocks_cut_at(draft, draft.index(vector) + len(vector) // 2)]
    for number, place in enumerate(PLACES):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts += [page_of(lesson).html for lesson in lessons_with(folder, "docusaurus.config.js", place)]
    (tmp_path / "spread").mkdir()
    texts += [page_of(lesson).html for lesson in lessons_with_payloads(tmp_path / "spread", "mkdocs.yml")]
    assert len(set(PAYLOADS)) >= MIN_PAYLOADS
    page = browser.new_page()
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: dialogs.append(request.url))
    page.set_content("<!doctype html><main></main>")

    active = page.evaluate(
        f"""async (texts) => {{
            const main = document.querySelector("main");
            main.innerHTML = texts.join("<hr>");
            await new Promise((done) => setTimeout(done, 200)); // images and frames would have been asked for
            return ({ACTIVE})(main);
        }}""",
        texts,
    )

    assert active == []
    assert dialogs == []
    assert page.evaluate(FOUND) == 3  # the search finds what it looks for
    page.close()


def lesson_named(vector: str) -> dict[str, Any]:
    """A lesson of an outline."""
    return {"parent_doc_id": str(uuid.uuid4()), "title": vector, "url": "/x", "lesson": 1}


def turn_with(number: int, vector: str) -> dict[str, Any]:
    """A stored turn that has a payload in every text of its reply."""
    source = dict.fromkeys(("page_title", "section", "breadcrumb", "chunk_text"), vector)
    source |= {
        "number": 1,
        "chunk_id": "a",
        "parent_doc_id": str(uuid.uuid4()),
        "url": vector,
        "html": passage_html(vector),
    }
    source |= {"line_start": 1, "line_end": 2}
    statement = {"citations": [1], "verdict": "doubtful", "evidence": vector, "reason": vector, "chunk_id": "a"}
    lists = {name: [lesson_named(vector)] for name in ("nearest", "outside_scope")}
    reply = {
        "should_answer": number % 2 == 0,
        "response": vector,
        "html": answer_html(vector, sources=1) + '<p><span class="claim" data-claim="0"></span></p>',
        "sources": [source],
        "statements": [statement],
        "other_books": [vector],
        "suggestions": [vector],
        "confidence_level": "high",
        "model": vector,
        "filters": {"layer_filter": vector, "module_filter": vector},
        "book_id": BOOK,
        "metrics": {"num_chunks": 1},
        **lists,
    }
    return {"number": number + 1, "question": vector, "reply": reply, "feedback": None, "run_id": str(uuid.uuid4())}


def serve_payloads(page: Page, thread: str) -> None:
    """A server whose every text is a payload: books, outline, filters, conversations, results and a conversation."""
    titles = " ".join(PAYLOADS)
    books = [{"book_id": BOOK, "title": titles, "default": True}] + [
        {"book_id": f"b{number}", "title": vector, "default": False} for number, vector in enumerate(PAYLOADS)
    ]
    values = {"hardware_tiers": [1, 2], "proficiency_levels": list(PAYLOADS), "layers": list(PAYLOADS)}
    modules = [{"module": vector, "title": vector} for vector in PAYLOADS]
    chapters = [{"module": vector, "chapter": number, "title": vector} for number, vector in enumerate(PAYLOADS)]
    book = books[0] | {"description": titles, "language": "en", "lessons": 1, "suggestions": list(PAYLOADS)}
    parts = [[{"chapter": 1, "title": vector, "lessons": [lesson_named(vector)]}] for vector in PAYLOADS]
    lessons = [{"module": "m", "title": vector, "chapters": part} for vector, part in zip(PAYLOADS, parts, strict=True)]
    outline = {"book_id": BOOK, "title": titles, "modules": lessons}
    moment = "2026-01-02T03:04:05Z"
    threads = [
        {"thread_id": str(uuid.uuid4()), "title": vector, "book_id": vector, "turn_count": 1, "updated_at": moment}
        for vector in PAYLOADS
    ]
    results = [
        {"section_title": vector, "lesson_title": vector, "text": vector, "marks": [[0, 3]], "parent_doc_id": "x",
         "line_start": 1, "line_end": 2}
        for vector in PAYLOADS
    ]  # fmt: skip
    turns = [turn_with(number, vector) for number, vector in enumerate(PAYLOADS)]
    answers: dict[str, Any] = {
        "**/books": books,
        f"**/books/{BOOK}": book | {"filters": values | {"modules": modules, "chapters": chapters}},
        f"**/books/{BOOK}/outline": outline,
        "**/threads?*": {"threads": threads, "next_cursor": None},
        "**/search": {"results": results},
        f"**/threads/{thread}/export?*": {"title": titles, "book_id": BOOK, "filters": {}, "turns": turns},
    }
    for pattern, answer in answers.items():
        page.route(pattern, partial(answer_with, answer))


def test_payloads_stay_text_on_the_readers_page(page: Page) -> None:
    """Titles of books, lessons and conversations, questions, answers, notes, reasons, suggestions, filters and search
    results that look like HTML are shown as they are written."""
    thread = str(uuid.uuid4())
    serve_payloads(page, thread)
    page.goto("/")
    expect(page.locator(".title-page h1")).to_have_text(" ".join(PAYLOADS))
    expect(page.locator(".outline .module")).to_have_count(len(PAYLOADS))
    page.get_by_role("button", name="Filters").click()
    assert page.evaluate(ACTIVE, page.query_selector("html")) == []
    page.get_by_role("button", name="Conversations").click()
    expect(page.locator(".conversation-title")).to_have_count(len(PAYLOADS))
    assert page.locator(".conversation-title").all_text_contents() == list(PAYLOADS)
    assert page.evaluate(ACTIVE, page.query_selector("html")) == []
    page.locator("#conversations .close").click()
    page.get_by_role("button", name="Contents").click()
    page.get_by_role("searchbox", name="Search the book").fill("script")
    expect(page.locator(".result")).to_have_count(len(PAYLOADS))
    assert page.evaluate(ACTIVE, page.query_selector("html")) == []

    page.goto(f"/?thread={thread}")
    expect(page.locator(".turn")).to_have_count(len(PAYLOADS))
    assert page.locator(".question").all_text_contents() == list(PAYLOADS)
    page.evaluate("() => document.querySelectorAll('.note-title, .flag, summary').forEach((part) => part.click())")
    expect(page.locator(".doubt").first).to_be_visible()
    assert page.evaluate(ACTIVE, page.query_selector("html")) == []


def test_payloads_in_problems_stay_text(page: Page, complaints: Complaints) -> None:
    """What a server reports about a question, in the stream or instead of it, is text."""
    complaints.expected.append("503")
    vectors = iter(VECTORS)

    def refuse(route: Route) -> None:
        body = {"status": 503, "title": "", "detail": next(vectors), "code": "another"}
        if VECTORS.index(body["detail"]) % 2:
            route.fulfill(content_type="text/event-stream", body=f"event: error\ndata: {json.dumps(body)}\n\n")
        else:
            route.fulfill(status=503, json=body)

    page.route("**/chat/stream", refuse)
    for number, vector in enumerate(VECTORS, start=1):
        send(page, vector)
        expect(page.get_by_role("alert")).to_have_count(number)
        expect(page.locator("[aria-busy]")).to_have_count(0)

    assert page.get_by_role("alert").all_text_contents() == [f"That did not work: {vector}" for vector in VECTORS]
    assert page.evaluate(ACTIVE, page.query_selector("html")) == []
