"""Readers of sites that have the widget: they ask, read, are led to the place, and go on from page to page."""

from __future__ import annotations

import html
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from lectern.api.widget_access import WIDGET_WORDS
from tests.answering.scripted import drafting, is_judging
from tests.fakeai import Step
from tests.served import LECTERN, lectern, serving
from tests.unit.payloads import PAYLOADS
from tests.web.conftest import Complaints, needs_browser
from tests.web.hosts import Host, hosting
from tests.web.reading import ANSWERED, REFUSED
from tests.web.test_files import WEB
from tests.web.test_layout import axe_source
from tests.web.test_payloads import ACTIVE, turn_with
from tests.web.widget_sites import (
    MARKED,
    TRUE,
    Sites,
    ask,
    box,
    create_key,
    follow_source,
    launcher,
    marked,
    panel,
    requests_to,
    send,
    settled,
    widget_sites,
    writing,
)

pytestmark = [pytest.mark.browser, needs_browser]
KINDS = ["mkdocs", "mdbook", "docusaurus"]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    """The server and its sites."""
    with widget_sites(tmp_path_factory.mktemp("widget")) as sites:
        yield sites


@pytest.fixture
def host(sites: Sites) -> Host:
    """The site that needs no program, under the strictest policy."""
    sites.ai.script(then=writing(f"{TRUE} [1]"))
    return sites.host("mdbook")


@pytest.fixture
def open_host(host: Host) -> Iterator[Host]:
    """The same site without its policy."""
    policy = dict(host.headers)
    host.headers.clear()
    yield host
    host.headers.update(policy)


@pytest.fixture
def reader(browser: Browser, complaints: Complaints, options: dict[str, Any]) -> Iterator[Page]:
    """A fresh browser; an error in a script, or anything that a policy blocks, fails the test."""
    context = browser.new_context(**options, reduced_motion="reduce")
    page = context.new_page()
    complaints.watch(page)
    yield page
    context.close()
    assert complaints.unexpected() == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_story_of_a_reader(sites: Sites, reader: Page, kind: str) -> None:
    """On a real site: open, ask, read, follow a source to the marked words, go on there, and be refused."""
    host = sites.host(kind)
    sites.ai.script(then=writing(f"{TRUE} [1]"))
    addresses: list[str] = []
    reader.on("request", lambda request: addresses.append(request.url))
    chats = requests_to(reader, "/chat/stream")
    reader.goto(host.page("graph/nodes"))
    launcher(reader).click()

    turn = ask(reader, ANSWERED)
    expect(turn.locator(".answer-text")).to_contain_text(MARKED)
    expect(turn.locator(".tick")).to_have_count(1)
    follow_source(turn)
    expect(reader).to_have_url(re.compile(re.escape(host.page("graph/quality")) + "#summary$"))
    expect(reader.locator("#summary")).to_be_in_viewport()
    reader.wait_for_function("() => CSS.highlights.get('lectern-quote')?.size === 1")
    assert marked(reader) == MARKED

    expect(panel(reader)).to_be_visible()  # the conversation has come along
    expect(panel(reader).locator(".question")).to_have_text(ANSWERED)
    ask(reader, "And what about durability?")
    assert chats[0]["metadata"] == {"page_url": host.page("graph/nodes")}
    assert chats[1]["session_id"]

    refusal = ask(reader, REFUSED)
    expect(refusal.locator(".answer-text")).to_have_text("I couldn't find that information in the book.")
    refusal.get_by_role("link", name="Nodes and Topics").click()
    expect(reader).to_have_url(re.compile(re.escape(host.page("graph/nodes"))))
    assert not any(sites.keys[kind] in address for address in addresses)


def test_the_keyboard_is_enough(host: Host, reader: Page) -> None:
    """A shortcut opens the panel with the box in focus, Tab stays inside, Escape returns to the button."""
    reader.goto(host.page("graph/nodes"))
    expect(launcher(reader)).to_have_attribute("title", "Ask the book (Ctrl+I)")
    reader.keyboard.press("Control+i")
    expect(box(reader)).to_be_focused()

    for _ in range(12):
        reader.keyboard.press("Tab")
        assert reader.evaluate("() => document.activeElement.localName") == "lectern-widget"
    reader.keyboard.press("Shift+Tab")
    assert reader.evaluate("() => document.activeElement.localName") == "lectern-widget"

    reader.keyboard.press("Escape")
    expect(panel(reader)).to_be_hidden()
    expect(launcher(reader)).to_be_focused()
    expect(launcher(reader)).to_have_attribute("aria-expanded", "false")


def test_selected_words_can_be_asked_about(host: Host, reader: Page) -> None:
    """Words that are selected in the page's text offer a question about them."""
    reader.goto(host.page("graph/quality"))
    expect(launcher(reader)).to_be_visible()
    reader.locator("main p").first.select_text()
    reader.get_by_role("button", name="Ask about this").click()

    expect(panel(reader).locator(".asked-passage")).to_contain_text("A lost camera frame does not matter")
    expect(box(reader)).to_be_focused()
    turn = ask(reader, "Why?")
    expect(turn.locator(".question")).to_have_text(re.compile("^“A lost camera frame .+” — Why\\?$"))
    expect(panel(reader).locator(".asked-passage")).to_be_hidden()


def test_a_question_can_be_about_this_page_only(host: Host, reader: Page) -> None:
    """The page's address names its lesson; other pages of the site have no such choice."""
    chats = requests_to(reader, "/chat/stream")
    reader.goto(host.page("graph/quality"))
    launcher(reader).click()
    reader.get_by_role("checkbox", name="Only this page").check()
    turn = ask(reader, ANSWERED)
    expect(turn.locator(".colophon")).to_contain_text("Only this page")

    reader.get_by_role("checkbox", name="Only this page").uncheck()
    turn = ask(reader, ANSWERED)
    expect(turn.locator(".colophon")).not_to_contain_text("Only this page")
    assert chats[0]["parent_doc_id"]
    assert chats[1]["parent_doc_id"] is None


def test_a_page_that_hides_the_answer_says_where_it_is(host: Host, reader: Page) -> None:
    """A question that other pages answer leads there, and can be asked of the whole book."""
    reader.goto(host.page("graph/services"))
    launcher(reader).click()
    reader.get_by_role("checkbox", name="Only this page").check()
    turn = ask(reader, "What is the sensor data profile?")
    expect(turn.get_by_role("heading", name="Your filters hide lessons that have it")).to_be_visible()

    turn.get_by_role("button", name="Ask without filters").click()
    settled(reader)
    expect(reader.locator(".turn.answer")).to_have_count(1)
    expect(reader.get_by_role("checkbox", name="Only this page")).not_to_be_checked()


def test_an_answer_goes_on_on_the_next_page(sites: Sites, host: Host, reader: Page) -> None:
    """A reader who goes to another page in mid-answer finds it growing there; the model is asked once."""
    continued = threading.Event()
    sites.ai.received.clear()
    sites.ai.script(Step(say=drafting(f"It has **two sides**. {TRUE} [1]"), hold=continued), then=writing(TRUE))
    reader.goto(host.page("graph/nodes"))
    launcher(reader).click()
    send(reader, ANSWERED)
    expect(reader.locator(".answer-text strong")).to_have_text("two sides")

    reader.goto(host.page("graph/services"))
    expect(reader.locator(".answer-text strong")).to_have_text("two sides")
    expect(reader.locator(".turn")).to_have_attribute("aria-busy", "true")
    continued.set()
    settled(reader)
    expect(reader.locator(".turn.answer")).to_have_count(1)
    drafts = [each for each in sites.ai.received if each.path.endswith("completions") and not is_judging(each.body)]
    assert len(drafts) == 1


def test_a_reader_can_stop_and_begin_again(sites: Sites, host: Host, reader: Page) -> None:
    """Stop ends the answer, and a new conversation is empty, also after a reload."""
    continued = threading.Event()
    sites.ai.script(Step(say=drafting(f"It has **two sides**. {TRUE} [1]"), hold=continued), then=writing(TRUE))
    reader.goto(host.page("graph/nodes"))
    launcher(reader).click()
    send(reader, ANSWERED)
    expect(reader.locator(".answer-text strong")).to_be_visible()

    reader.get_by_role("button", name="Stop").click()
    expect(reader.get_by_text("You stopped this answer.")).to_be_visible()
    continued.set()
    reader.get_by_role("button", name="New conversation").click()
    expect(reader.locator(".turn")).to_have_count(0)
    reader.reload()
    expect(reader.locator(".welcome-title")).to_have_text("Robots")
    expect(reader.locator(".turn")).to_have_count(0)


def test_a_phone_shows_the_panel_or_the_page(host: Host, reader: Page) -> None:
    """On a phone the panel covers the page; a source closes it and shows the marked words."""
    reader.set_viewport_size({"width": 390, "height": 844})
    reader.goto(host.page("graph/nodes"))
    launcher(reader).click()
    expect(panel(reader)).to_have_attribute("aria-modal", "true")
    assert panel(reader).bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}

    follow_source(ask(reader, ANSWERED))
    reader.wait_for_url("**/graph/quality.html#summary")
    reader.wait_for_function("() => CSS.highlights.get('lectern-quote')?.size === 1")
    expect(panel(reader)).to_be_hidden()
    launcher(reader).click()
    expect(panel(reader).locator(".question")).to_have_text(ANSWERED)


def test_a_source_on_the_same_page_is_marked_without_loading_it(host: Host, reader: Page) -> None:
    """The panel stays as it is."""
    reader.goto(host.page("graph/quality"))
    launcher(reader).click()
    turn = ask(reader, ANSWERED)
    reader.evaluate("() => (window.sameDocument = true)")
    follow_source(turn)

    expect(reader).to_have_url(re.compile("#summary$"))
    assert marked(reader) == MARKED
    assert reader.evaluate("() => window.sameDocument")


def test_the_panel_hides_nothing_of_the_text(sites: Sites, reader: Page) -> None:
    """On a wide screen the page moves aside, and back when the panel is closed."""
    site = sites.host("mkdocs")
    reader.goto(site.page("graph/nodes"))
    before = reader.locator("article").bounding_box()
    launcher(reader).click()
    expect(panel(reader)).to_be_visible()
    text, sheet = reader.locator("article").bounding_box(), panel(reader).bounding_box()

    assert text
    assert sheet
    assert text["x"] + text["width"] < sheet["x"]
    reader.keyboard.press("Escape")
    assert reader.locator("article").bounding_box() == before


def test_what_is_wrong_is_said_in_words(sites: Sites, open_host: Host, reader: Page, complaints: Complaints) -> None:
    """A key that is not valid, a key for another site, and a site that no key is for."""
    complaints.expected += ["401", "403", "CORS", "ERR_FAILED"]
    bad = f'<script src="{sites.address}/widget.js" data-key="lp_{"x" * 12}_{"x" * 32}" data-book="x"></script>'
    other = sites.script("mkdocs", "mkdocs-book") if sites.host("mkdocs") else ""
    reader.goto(sites.page_with(open_host, "bad.html", bad))
    launcher(reader).click()
    expect(panel(reader).get_by_role("alert")).to_have_text(
        "The key of this widget is not valid. The owner of this site can mend that."
    )

    reader.goto(sites.page_with(open_host, "other.html", other))
    launcher(reader).click()
    expect(panel(reader).get_by_role("alert")).to_contain_text(f"does not answer pages of {open_host.origin}")

    unknown = reader.context.new_page()
    with hosting("mdbook", sites.folder / "stranger") as stranger:
        unknown.goto(sites.page_with(stranger, "page.html", sites.script("mdbook", open_host.book)))
        launcher(unknown).click()
        expect(panel(unknown).get_by_role("alert")).to_contain_text(f"does not answer pages of {stranger.origin}")


def test_too_many_questions_and_a_lost_server(
    sites: Sites, open_host: Host, reader: Page, complaints: Complaints, tmp_path: Path
) -> None:
    """A reader who asks too often is told how long to wait; one whose server is gone, that it is being looked for."""
    complaints.expected += ["429", "ERR_"]
    home = tmp_path / "home"
    lectern("ingest", str(sites.folder / "mdbook"), "--book", open_host.book, home=home)
    settings = {"LECTERN_HOME": str(home), "LECTERN_READER_RATE_LIMIT": "5"}
    key = create_key(home, open_host.book, open_host.origin)
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
        script = f'<script src="{address}/widget.js" data-key="{key}" data-book="{open_host.book}"></script>'
        reader.goto(sites.page_with(open_host, "limited.html", script))
        launcher(reader).click()
        ask(reader, ANSWERED)
        for _ in range(4):
            limited = ask(reader, ANSWERED)
            if limited.get_by_role("alert").count():
                break
        expect(limited.get_by_role("alert")).to_have_text(
            re.compile(r"Too many questions at once. Try again in \d+ sec")
        )
        expect(limited.get_by_role("button", name="Try again")).to_be_disabled()
    send(reader, ANSWERED)
    expect(panel(reader).locator(".turn-status").last).to_have_text("Waiting for the server …")


def test_a_book_cannot_run_anything_on_the_page(sites: Sites, open_host: Host, reader: Page, tmp_path: Path) -> None:
    """Markup in a title, a heading, a text, a question and an answer stays text; the key is in no storage."""
    attack = '<img src=x onerror="window.attacked=1"><script>window.attacked=1</script>'
    lesson = (
        f"# Quality of Service `{attack}`\n\n## Reliable and best effort\n\n{TRUE} {TRUE}\n\n{attack}\n\n`{attack}`\n"
    )
    (tmp_path / "hostile.md").write_text(f"{lesson}\n[here](javascript:window.attacked=1)\n", encoding="utf-8")
    lectern("ingest", str(tmp_path), "--book", "hostile", home=sites.home)
    sites.keys["hostile"] = create_key(sites.home, "hostile", open_host.origin)
    sites.ai.script(then=writing(f"{TRUE} [1] {attack} [x](javascript:window.attacked=1)"))
    reader.goto(
        sites.page_with(open_host, "hostile.html", sites.script("hostile", "hostile", title=html.escape(attack)))
    )
    reader.get_by_role("button", name="<img").click()
    expect(ask(reader, attack).locator(".question")).to_have_text(attack)
    turn = ask(reader, ANSWERED)
    turn.locator("a.cite").first.click()
    for title in turn.locator(".note-title").all():
        title.click()

    active = """() => [...document.querySelector("lectern-widget").shadowRoot.querySelectorAll("*")].filter((part) =>
        part.matches("script, iframe, object, embed, img[src='x'], a[href^='javascript']") ||
        [...part.attributes].some(({ name }) => name.startsWith("on"))).map((part) => part.outerHTML)"""
    assert reader.evaluate(active) == []
    assert reader.evaluate("() => window.attacked") is None
    stored = reader.evaluate("() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")
    assert sites.keys["hostile"] not in stored


@pytest.mark.parametrize("should_answer", [True, False])
def test_payloads_stay_text_in_the_widget(open_host: Host, reader: Page, should_answer: bool) -> None:
    """300 payloads in questions to begin with, in an answer, its notes, reasons and lessons, and in a refusal."""
    turns = [turn_with(number, vector)["reply"] for number, vector in enumerate(PAYLOADS)]
    sources = [turn["sources"][0] | {"number": n, "chunk_id": f"{n}"} for n, turn in enumerate(turns, start=1)]
    statements = [turn["statements"][0] | {"citations": [n]} for n, turn in enumerate(turns, start=1)]
    claims = [f'<p><span class="claim" data-claim="{n}"></span></p>{turn["html"]}' for n, turn in enumerate(turns)]
    reply = turns[0] | {"should_answer": should_answer, "sources": sources, "statements": statements}
    reply |= {"html": "".join(claims), "suggestions": list(PAYLOADS), "other_books": list(PAYLOADS)}
    reply |= {name: [turn[name][0] for turn in turns] for name in ("nearest", "outside_scope")}
    access = {"Access-Control-Allow-Origin": open_host.origin, "Content-Type": "text/event-stream"}
    body = f"event: reply\ndata: {json.dumps(reply)}\n\n"
    reader.route("**/chat/stream", lambda route: route.fulfill(headers=access, body=body))
    reader.goto(open_host.page("graph/quality"))
    launcher(reader).click()
    turn = ask(reader, PAYLOADS[0])

    expect(turn.locator(".question")).to_have_text(PAYLOADS[0])
    shown = turn.locator(".note-title" if should_answer else "button")
    expect(shown.first).to_be_attached()
    assert shown.count() >= len(PAYLOADS)
    widget = reader.locator("lectern-widget").evaluate_handle("widget => widget.shadowRoot")
    reader.evaluate("root => root.querySelectorAll('.note-title, .flag, summary').forEach((p) => p.click())", widget)
    assert reader.evaluate(ACTIVE, widget) == []


def test_a_widget_in_the_text(sites: Sites, open_host: Host, reader: Page) -> None:
    """In the language of the page, in the size of text that the reader's browser has, in the colours of the site."""
    script = sites.script("mdbook", open_host.book, mode="inline", target="#here")
    style = "<style>html { font-size: 62.5%; } lectern-widget { --lectern-accent: #4051b5; }</style>"
    reader.goto(sites.page_with(open_host, "inline.html", script, text=f"{style}<div id=here></div>", lang="de"))

    field = reader.locator("#here lectern-widget").get_by_role("textbox", name="Ihre Frage")
    expect(reader.locator(".welcome-title")).to_have_text("Robots")
    expect(field).to_have_css("font-size", "17px")
    expect(reader.get_by_role("button", name="Fragen", exact=True)).to_have_css("background-color", "rgb(64, 81, 181)")
    expect(reader.get_by_role("dialog")).to_have_count(0)
    field.fill(ANSWERED)
    field.press("Enter")
    settled(reader)
    expect(reader.locator(".answer-text")).to_contain_text(MARKED)


def test_the_widget_is_as_dark_as_the_page(host: Host, reader: Page) -> None:
    """A page with a switch of its own is followed."""
    reader.goto(host.page("graph/nodes"))
    expect(reader.locator("lectern-widget")).to_have_attribute("data-theme", "light")
    reader.evaluate("() => document.documentElement.classList.add('navy')")
    expect(reader.locator("lectern-widget")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("handed", ["fragment", "message"])
def test_an_iframe_on_a_page_of_the_site(sites: Sites, open_host: Host, reader: Page, handed: str) -> None:
    """It gets its key in the fragment of its address or in a message; its sources lead the page around it."""
    fragment = f"#key={sites.keys['mdbook']}" if handed == "fragment" else ""
    address = f"{sites.address}/embed/?book={open_host.book}{fragment}"
    frame = f'<iframe id="frame" width="480" height="700" src="{address}"></iframe>'
    message = {"lectern": {"key": sites.keys["mdbook"], "page": open_host.page("graph/quality")}}
    answer = f"""<script>window.addEventListener("message", ({{ data, source }}) => data.lectern === "ready" &&
        source.postMessage({json.dumps(message)}, "{sites.address}"));</script>"""
    reader.goto(sites.page_with(open_host, "framed.html", "", text=answer + frame))
    inside = reader.frame_locator("#frame")

    inside.get_by_role("textbox", name="Your question").fill(ANSWERED)
    inside.get_by_role("textbox", name="Your question").press("Enter")
    turn = inside.locator(".turn")
    expect(turn.locator(".answer-text")).to_contain_text(MARKED)
    expect(inside.get_by_role("checkbox", name="Only this page")).to_be_visible(visible=handed == "message")
    assert sites.keys["mdbook"] not in reader.frames[1].url
    turn.locator("a.cite").first.click()
    turn.locator(".footnote").get_by_role("button", name="Read in the lesson").click()
    expect(reader).to_have_url(re.compile(re.escape(open_host.page("graph/quality")) + "#summary"))


def test_other_sites_cannot_show_the_iframe(sites: Sites, host: Host, reader: Page, complaints: Complaints) -> None:
    """The browser refuses a page whose origin no key is for."""
    complaints.expected.append("frame-ancestors")
    with hosting("mdbook", sites.folder / "framing") as stranger:
        frame = f'<iframe src="{sites.address}/embed/?book={host.book}#key={sites.keys["mdbook"]}"></iframe>'
        with reader.expect_console_message(lambda message: "frame-ancestors" in message.text):
            reader.goto(sites.page_with(stranger, "page.html", "", text=frame))
        assert reader.frame_locator("iframe").locator("lectern-widget").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing_in_the_widget(
    open_host: Host, reader: Page, complaints: Complaints, width: int, dark: bool
) -> None:
    """In every state, light and dark, on a phone and on a wide screen."""
    complaints.expected += ["429", "ERR_"]
    source = axe_source()
    reader.set_viewport_size({"width": width, "height": 844})
    reader.goto(open_host.page("graph/quality"))
    if dark:
        reader.evaluate("() => document.documentElement.classList.add('navy')")
        expect(reader.locator("lectern-widget")).to_have_attribute("data-theme", "dark")
    expect(launcher(reader)).to_be_visible()
    reader.add_script_tag(content=source)
    check = "async () => (await axe.run('lectern-widget')).violations.map(({ id, nodes }) => [id, nodes[0].html])"
    assert reader.evaluate(check) == []
    launcher(reader).click()
    expect(reader.locator(".welcome-title")).to_be_visible()
    assert reader.evaluate(check) == []
    ask(reader, ANSWERED).locator("a.cite").first.click()
    assert reader.evaluate(check) == []
    ask(reader, REFUSED)
    assert reader.evaluate(check) == []
    limit = {"status": 429, "title": "Too Many Requests", "detail": "later", "code": "too_many"}
    access = {"Access-Control-Allow-Origin": open_host.origin, "Access-Control-Expose-Headers": "Retry-After"}
    refuse = {"status": 429, "json": limit, "headers": access | {"Retry-After": "60"}}
    reader.route("**/chat/stream", lambda route: route.fulfill(**refuse))
    expect(ask(reader, ANSWERED).get_by_role("alert")).to_be_visible()
    assert reader.evaluate(check) == []
    reader.unroute("**/chat/stream")
    reader.route("**/chat/stream", lambda route: route.abort())
    send(reader, ANSWERED)
    expect(panel(reader).locator(".turn-status").last).to_have_text("Waiting for the server …")
    assert reader.evaluate(check) == []


def test_the_widget_has_its_words() -> None:
    """Every key that its modules name is among those that it loads."""
    text = "".join(
        file.read_text(encoding="utf-8") for name in ("widget", "shared") for file in (WEB / name).glob("*.js")
    )
    keys = set(re.findall(r'\bt\((?:\w+ \? )?"([a-z_.]+)"', text))

    assert len(keys) > 30
    assert {key for key in keys if not key.startswith(WIDGET_WORDS)} == set()
