"""The author's page in a real browser: from the list of books to what readers asked."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from lectern.domain.keys import RIGHTS
from tests.served import LECTERN, lectern, serving
from tests.unit.payloads import PAYLOADS
from tests.web.conftest import Complaints, needs_browser
from tests.web.reading import OVERFLOW, REFUSED
from tests.web.test_layout import axe_source
from tests.web.test_payloads import ACTIVE

pytestmark = [pytest.mark.browser, needs_browser]
LESSONS = {
    "01-nodes.md": "# Nodes\n\nA node is a process that computes.\n\n## Topics\n\nNodes talk over named topics.\n",
    "02-frames.md": "# Frames\n\nA frame is a coordinate system. Transforms say where one frame stands in another.\n",
}
NEW_SECTION = "\n## Services\n\nA service is a request with exactly one response, such as resetting the odometry.\n"
BROKEN = "---\ntitle: [\n---\n\n# Broken front matter\n\nThis lesson has a title in brackets that never close.\n"
NOT_ADMIN = "The desk is for keys with the right “admin”."
EVIL = "<img src=x onerror=document.title=1>"
EVIL_LESSON = f"---\ntitle: '{EVIL}'\n---\n\n# `{EVIL}`\n\n## About `{EVIL}`\n\nA pump: `{EVIL}` is its source.\n"


@dataclass(frozen=True)
class Site:
    """A server and the folder of its books."""

    address: str
    books: Path
    home: Path

    def ask(self, question: str) -> str:
        """Ask as a reader does; the conversation's id."""
        thread = str(uuid.uuid4())
        body = {"message": question, "session_id": thread, "book_id": "robots"}
        httpx.post(f"{self.address}/chat/run", json=body, timeout=120).raise_for_status()
        return thread


def write_lessons(folder: Path, lessons: dict[str, str]) -> None:
    """Write the files of a book."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in lessons.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server of its own, because the story changes the book."""
    books, home = tmp_path / "books", tmp_path / "home"
    write_lessons(books / "robots", LESSONS)
    lectern("ingest", str(books / "robots"), "--book", "robots", home=home)
    settings = {"LECTERN_HOME": str(home), "LECTERN_BOOKS": str(books), "LECTERN_RATE_LIMIT": "0"}
    settings["LECTERN_INSIGHTS_QUESTIONS"] = "true"
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
        yield Site(address, books, home)


@pytest.fixture
def page(browser: Browser, site: Site, complaints: Complaints, options: dict[str, Any]) -> Iterator[Page]:
    """A fresh tab, closed before its server; an error in its script or a blocked resource fails the test."""
    context = browser.new_context(**options)
    page = context.new_page()
    complaints.watch(page)
    yield page
    context.close()
    assert complaints.unexpected() == []


def figure(page: Page, name: str) -> Locator:
    """The number above a name."""
    return page.locator(".figures > div").filter(has=page.get_by_text(name, exact=True)).locator("dd")


def read_chunks(page: Page) -> None:
    """From the list of books to the chunks of a lesson."""
    page.get_by_role("link", name="robots").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Robots")
    page.get_by_role("link", name="Nodes", exact=True).click()
    expect(page.locator(".chunk-text").first).to_contain_text("A node is a process that computes.")


def ingest_edit(page: Page, site: Site) -> None:
    """Edit a lesson and add a faulty one; see what would happen, let it happen, and read the report."""
    edited = {"02-frames.md": LESSONS["02-frames.md"] + NEW_SECTION, "03-broken.md": BROKEN}
    write_lessons(site.books / "robots", edited)
    page.get_by_role("link", name="Ingest").click()
    before = page.locator("#book-head .remark").inner_text()
    page.get_by_role("button", name="Dry run").click()
    expect(figure(page, "Files new")).to_have_text("1")
    expect(figure(page, "Files modified")).to_have_text("1")
    expect(page.locator(".problems")).to_contain_text("03-broken.md")
    assert len(httpx.get(f"{site.address}/ingestions").json()["jobs"]) == 1  # a dry run is no job

    page.get_by_role("button", name="Ingest").click()
    expect(page.get_by_role("heading", name=re.compile("Job 2: Completed"))).to_be_visible(timeout=30_000)
    expect(figure(page, "Files read")).to_have_text("2")
    expect(page.locator("#book-head .remark")).not_to_have_text(before)  # more chunks
    expect(page.locator(".problems li li").first).to_contain_text("front matter")
    expect(page.locator(".rows").get_by_role("button", name="Job 2")).to_be_visible()


def try_search(page: Page) -> None:
    """What was added is found first, with three scores; the order follows the fused one."""
    page.get_by_role("link", name="Search").click()
    page.get_by_label("Question or words").fill("reset the odometry with a service")
    page.get_by_role("button", name="Search").click()
    first = page.locator(".hit").first
    expect(first).to_contain_text("exactly one response")
    expect(first.locator(".scores dt")).to_have_text(["Fused", "Dense", "Lexical"])
    fused = [float(score) for score in page.locator(".fused .value").all_inner_texts()]
    assert fused == sorted(fused, reverse=True)
    assert 0 < fused[0] <= 1


def read_insights(page: Page, site: Site) -> None:
    """An answer, a refusal and a thumb are there, in numbers, in the chart and by lesson."""
    site.ask("What is a node?")
    rating = {"turn": 1, "rating": "down", "reason": "incomplete"}
    httpx.post(f"{site.address}/threads/{site.ask(REFUSED)}/feedback", json=rating).raise_for_status()
    page.get_by_role("link", name="Insights").click()
    expect(figure(page, "Questions")).to_have_text("2")
    expect(figure(page, "Refused")).to_have_text("1")
    expect(figure(page, "Thumbs down")).to_have_text("1")
    expect(page.locator("svg.day-chart rect.refused")).to_have_count(7)  # from the first question, but a week
    expect(page.get_by_text(REFUSED)).to_be_visible()
    expect(page.get_by_text("Something is missing")).to_be_visible()
    expect(page.get_by_role("heading", name="Most cited sections")).to_be_visible()


def test_the_authors_story(page: Page, site: Site) -> None:
    """Books, chunks, a dry run, an edit, an ingestion with its warnings, scores of a search, and what readers asked."""
    page.goto(f"{site.address}/desk")
    read_chunks(page)
    ingest_edit(page, site)
    try_search(page)
    read_insights(page, site)
    page.go_back()
    expect(page.get_by_label("Question or words")).to_be_visible()


def test_an_ingestion_is_watched_and_cancelled(page: Page, site: Site) -> None:
    """A new book is added from its folder; its progress moves, a reload finds the job again, and cancelling ends it.
    axe-core has no finding while the job runs, nor afterwards."""
    page.emulate_media(reduced_motion="reduce")
    check = "async () => (await axe.run()).violations.map(({ id, nodes }) => [id, nodes[0].html])"
    source = axe_source()
    lesson = "# Lesson {0}\n\n" + "Machine {0} has gear {0}, which turns wheel {0} at speed {0}. " * 40
    write_lessons(site.books / "big", {f"{number:03}.md": lesson.format(number) for number in range(400)})
    page.goto(f"{site.address}/desk/")
    page.get_by_label("Id of the book").fill("big")
    page.get_by_label("Folder").fill("big")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("Not indexed yet")).to_be_visible()

    page.get_by_role("button", name="Ingest").click()
    expect(page.locator(".job-words")).to_contain_text("of 400 files")
    page.reload()
    expect(page.locator(".job-words")).to_contain_text("of 400 files")
    page.evaluate(source)
    assert page.evaluate(check) == []
    page.get_by_role("button", name="Cancel").click()

    expect(page.get_by_role("heading", name=re.compile("Job 2: Cancelled"))).to_be_visible(timeout=30_000)
    assert page.evaluate(check) == []


def test_a_mistake_is_said_where_it_was_made(page: Page, site: Site, complaints: Complaints) -> None:
    """A folder that may not be read is refused in the server's words, and the form stays."""
    complaints.expected.append("422")
    page.goto(f"{site.address}/desk/?book=robots&view=ingest")
    page.get_by_label("Folder on the server").fill("/etc")
    page.get_by_role("button", name="Dry run").click()

    expect(page.get_by_role("alert")).to_contain_text("LECTERN_BOOKS")
    expect(page.get_by_role("button", name="Dry run")).to_be_enabled()
    page.goto(f"{site.address}/desk/?book=nothing")
    expect(page.get_by_role("alert")).to_contain_text("nothing")


def make_keys(home: Path) -> dict[str, str]:
    """A key that may read, one that may chat, and one with all rights."""
    rights = {"read": ("read",), "chat": ("chat",), "all": RIGHTS}
    options = {name: [part for right in granted for part in ("--right", right)] for name, granted in rights.items()}
    lines = {
        name: lectern("keys", "create", "--name", name, *more, "--json", home=home).stdout
        for name, more in options.items()
    }
    return {name: json.loads(line)["key"] for name, line in lines.items()}


def test_a_key_shows_what_it_may(browser: Browser, tmp_path: Path) -> None:
    """Without a key the page asks for one; without the right "admin" each view says what is missing; with it the author
    sees all, and the reader's page has a link to the desk."""
    home, folder = tmp_path / "home", tmp_path / "robots"
    write_lessons(folder, LESSONS)
    lectern("ingest", str(folder), "--book", "robots", home=home)
    keys = make_keys(home)
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, "LECTERN_HOME": str(home)}) as address:
        for name, sentences in {
            "read": {"lessons": NOT_ADMIN, "ingest": NOT_ADMIN, "insights": NOT_ADMIN},
            "chat": {"lessons": NOT_ADMIN, "search": NOT_ADMIN},
            "all": {"lessons": "Nodes", "ingest": "Job 1", "insights": "No question in this time."},
        }.items():
            page = browser.new_context(locale="en-GB").new_page()
            page.goto(f"{address}/desk/?book=robots")
            page.get_by_label("This server needs a key").fill("lk_wrong")
            page.get_by_role("button", name="Continue").click()
            expect(page.get_by_text("The key was not accepted")).to_be_visible()
            page.get_by_label("This server needs a key").fill(keys[name])
            page.get_by_role("button", name="Continue").click()
            for view, sentence in sentences.items():
                expect(page.get_by_label("This server needs a key")).to_be_hidden()
                page.goto(f"{address}/desk/?book=robots&view={view}")
                expect(page.locator("#view")).to_contain_text(sentence)
            assert keys[name] not in page.url
            page.goto(address)
            link = page.get_by_role("link", name="For the author: the desk")
            if name == "all":
                link.click()
                expect(page.get_by_role("heading", level=1)).to_have_text("Robots")
            elif name == "read":
                expect(page.locator(".outline")).to_be_visible()
                expect(link).to_have_count(0)
            page.context.close()


def test_what_a_book_contains_is_text(page: Page, site: Site) -> None:
    """Titles, files, chunks, problems, questions and comments that look like HTML are shown as they are written."""
    write_lessons(site.books / "evil", {"01-a.md": EVIL_LESSON})
    lectern("ingest", str(site.books / "evil"), "--book", "evil", home=site.home)
    body = {"message": f"{EVIL} wine with duck?", "book_id": "evil", "session_id": str(uuid.uuid4())}
    httpx.post(f"{site.address}/chat/run", json=body, timeout=120).raise_for_status()
    for view in ("lessons", "ingest", "search", "insights"):
        page.goto(f"{site.address}/desk/?book=evil&view={view}")
        expect(page.locator("#view > *").first).to_be_visible()
        if view == "search":
            page.get_by_label("Question or words").fill("the source of a pump")
            page.get_by_role("button", name="Search").click()
            expect(page.locator(".hit").first).to_contain_text(EVIL)
        assert page.locator("img, script:not([src])").count() == 0
        assert page.title() != "1"


TEXTS = {"title", "text", "breadcrumb", "source_file", "section", "section_title", "lesson_title", "message", "file"}
TEXTS |= {"questions", "comments", "error_message", "folder", "url", "page_url", "module_title", "chapter_title"}
ROWS = {"results", "refused_questions", "low_questions", "most_cited", "never_cited", "warnings", "errors", "chunks"}


def with_payload(value: Any, payload: str, *, rows: bool) -> Any:
    """A response of the server whose texts are a payload; with `rows`, its lists have a row for each payload."""
    if isinstance(value, list):
        return [with_payload(each, payload, rows=rows) for each in value]
    if not isinstance(value, dict):
        return value
    changed = {}
    for name, part in value.items():
        if rows and name in ROWS and isinstance(part, list) and part:
            changed[name] = [with_payload(part[0], each, rows=False) for each in PAYLOADS]
        elif name in TEXTS and part is not None:
            changed[name] = [payload] if isinstance(part, list) else payload
        else:
            changed[name] = with_payload(part, payload, rows=rows)
    return changed


def test_payloads_stay_text_at_the_desk(page: Page, site: Site) -> None:
    """Whatever the server says is text: 300 payloads as chunks, problems of files, search results and questions."""
    site.ask("What is a node?")
    site.ask(REFUSED)
    write_lessons(site.books / "robots", {"03-broken.md": BROKEN})
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))

    def spoil(route: Route) -> None:
        if route.request.resource_type != "fetch":
            route.continue_()
            return
        response = route.fetch()
        route.fulfill(response=response, json=with_payload(response.json(), PAYLOADS[0], rows=True))

    page.route(re.compile(r"/(books|ingestions|search|lessons)\b"), spoil)
    lesson = httpx.get(f"{site.address}/books/robots/outline").json()["modules"][0]["chapters"][0]["lessons"][0]
    for view in ("", "lessons", f"lessons&lesson={lesson['parent_doc_id']}", "ingest", "search", "insights"):
        page.goto(f"{site.address}/desk/" + (f"?book=robots&view={view}" if view else ""))
        expect(page.locator("#view:not([aria-busy]) > *").first).to_be_visible()
        if view == "ingest":
            page.get_by_role("button", name="Dry run").click()
            expect(page.locator(".plan .problems")).to_contain_text(PAYLOADS[-1])
        if view == "search":
            page.get_by_label("Question or words").fill("how do nodes talk")
            page.get_by_role("button", name="Search").click()
            expect(page.locator(".hit")).to_have_count(len(PAYLOADS))
        if view == "insights":
            expect(page.locator(".questions")).not_to_have_count(0)
        assert page.locator("body").evaluate(ACTIVE) == [], view
    assert dialogs == []


def test_the_words_follow_the_browsers_language(browser: Browser, site: Site) -> None:
    """In German every word of the interface is German: no key of a string and no English is left."""
    context = browser.new_context(locale="de-AT")
    page = context.new_page()
    page.goto(f"{site.address}/desk/?book=robots&view=ingest")
    expect(page.get_by_role("button", name="Probelauf")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "de"
    for view in ("lessons", "ingest", "search", "insights"):
        page.goto(f"{site.address}/desk/?book=robots&view={view}")
        expect(page.locator("#view > *").first).to_be_visible()
        assert "desk." not in page.locator("body").inner_text()
    context.close()


WIDTHS = (320, 390, 768, 1280)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_at_the_desk(
    page: Page, site: Site, complaints: Complaints, scheme: Literal["light", "dark"]
) -> None:
    """axe-core has no finding in any view, with a plan, a report, a mistake, results and numbers, and where a key is
    asked for, on a phone and a wide screen."""
    source = axe_source()
    complaints.expected += ["401", "422"]
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    site.ask("What is a node?")
    site.ask(REFUSED)
    lesson = httpx.get(f"{site.address}/books/robots/outline").json()["modules"][0]["chapters"][0]["lessons"][0]
    views = ["", "lessons", "ingest", "report", "mistake", "search", "insights", "key"]
    for view in [*views, f"lessons&lesson={lesson['parent_doc_id']}"]:
        place = {"report": "ingest", "mistake": "ingest", "key": "lessons"}.get(view, view)
        if view == "key":
            page.route("**/books", lambda route: route.fulfill(status=401, json={"detail": "a key is needed"}))
        page.goto(f"{site.address}/desk/" + (f"?book=robots&view={place}" if place else ""))
        if view == "key":
            expect(page.get_by_label("This server needs a key")).to_be_visible()
            page.unroute("**/books")
        else:
            expect(page.locator("#view:not([aria-busy]) > *").first).to_be_visible()
        if view == "ingest":
            page.get_by_role("button", name="Dry run").click()
            expect(page.locator(".plan")).to_be_visible()
        if view == "report":
            page.get_by_role("button", name="Job 1").click()
            expect(page.locator(".report")).to_be_visible()
        if view == "mistake":
            page.get_by_label("Folder on the server").fill("/etc")
            page.get_by_role("button", name="Dry run").click()
            expect(page.get_by_role("alert")).to_be_visible()
        if view == "search":
            page.get_by_label("Question or words").fill("how do nodes talk")
            page.get_by_role("button", name="Search").click()
            expect(page.locator(".hit").first).to_be_visible()
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate(source)
            found = page.evaluate("async () => (await axe.run()).violations")
            assert [(rule["id"], [each["html"] for each in rule["nodes"]]) for rule in found] == [], (view, width)


def test_a_lost_server_is_said_where_it_was_needed(page: Page, site: Site, complaints: Complaints) -> None:
    """A search, a dry run or another period fail with a sentence, and nothing is thrown."""
    complaints.expected.append("ERR_INTERNET_DISCONNECTED")
    for view, button in (("search", "Search"), ("ingest", "Dry run")):
        page.goto(f"{site.address}/desk/?book=robots&view={view}")
        expect(page.get_by_role("button", name=button)).to_be_visible()
        expect(page.locator("#view:not([aria-busy])")).to_be_attached()
        if view == "ingest":
            expect(page.get_by_role("button", name="Job 1")).to_be_visible()  # nothing else is on its way
        page.context.set_offline(True)
        if view == "search":
            page.get_by_label("Question or words").fill("how do nodes talk")
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("alert")).to_have_text("The server cannot be reached.")
        page.context.set_offline(False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen(browser: Browser, sample_home: Path, tmp_path: Path, scheme: str) -> None:
    """No view of the sample book, which has long paths and tables, need be scrolled sideways on any screen."""
    shutil.copytree(sample_home, tmp_path / "home")
    environment = {**os.environ, "LECTERN_HOME": str(tmp_path / "home"), "LECTERN_RATE_LIMIT": "0"}
    context = browser.new_context(color_scheme=scheme, locale="en-GB")  # type: ignore[arg-type]  # one of both
    page = context.new_page()
    too_wide = {}
    with serving([LECTERN, "serve", "--port", "0"], env=environment) as address:
        body = {"message": "What is a node?", "session_id": str(uuid.uuid4())}
        httpx.post(f"{address}/chat/run", json=body, timeout=120).raise_for_status()
        outline = httpx.get(f"{address}/books/physical-ai-robotics/outline").json()
        lesson = outline["modules"][0]["chapters"][1]["lessons"][1]["parent_doc_id"]
        for view in ("", "lessons", "ingest", "search", "insights", f"lessons&lesson={lesson}"):
            page.goto(f"{address}/desk/" + (f"?book=physical-ai-robotics&view={view}" if view else ""))
            expect(page.locator("#view:not([aria-busy]) > *").first).to_be_visible()
            if view == "search":
                page.get_by_label("Question or words").fill("how do nodes talk")
                page.get_by_role("button", name="Search").click()
                expect(page.locator(".hit").first).to_be_visible()
            page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                if wide := page.evaluate(OVERFLOW):
                    too_wide[view, width] = wide
    context.close()

    assert json.dumps({str(place): wide for place, wide in too_wide.items()}) == "{}"
