"""What a reader sees when something goes wrong: it is said, nothing is lost, and nothing is asked twice."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.answering.scripted import KEY, drafting
from tests.fakeai import Step, fake_ai
from tests.ports import free_port
from tests.served import LECTERN, lectern, serving, serving_process
from tests.web.conftest import Complaints, needs_browser
from tests.web.reading import ANSWERED, ask, question_box, send, settled

pytestmark = [pytest.mark.browser, needs_browser]


def problem(status: int, detail: str, **headers: str) -> dict[str, object]:
    """A response of the server that reports a problem."""
    body = json.dumps({"status": status, "title": "", "detail": detail})
    return {"status": status, "headers": headers, "content_type": "application/problem+json", "body": body}


def test_a_server_without_keys_asks_for_none(page: Page) -> None:
    """Where no key is needed there is no form for one."""
    expect(page.locator(".title-page h1")).to_be_visible()
    expect(page.get_by_label("This server needs a key")).to_be_hidden()


def test_a_problem_is_said_and_the_question_is_kept(page: Page, complaints: Complaints) -> None:
    """When the server cannot answer, the reader is told why, and one click asks again."""
    complaints.expected.append("503")
    page.route("**/chat/stream", lambda route: route.fulfill(**problem(503, "too many runs")))
    send(page, ANSWERED)

    expect(page.get_by_role("alert")).to_contain_text("too many runs")
    page.unroute("**/chat/stream")
    page.get_by_role("button", name="Try again").click()

    settled(page)
    expect(page.locator(".turn.answer")).to_have_count(1)
    expect(page.locator(".turn")).to_have_count(1)


def test_a_limit_says_when_to_try_again(page: Page, complaints: Complaints) -> None:
    """After too many questions the page counts down; then the reader can ask again."""
    complaints.expected.append("429")
    page.clock.install()
    page.route("**/chat/stream", lambda route: route.fulfill(**problem(429, "slow down", **{"Retry-After": "600"})))
    send(page, ANSWERED)

    counting = re.compile(r"^Too many questions at once\. Try again in (600|5\d\d) seconds\.$")
    expect(page.get_by_role("alert")).to_have_text(counting)
    expect(page.get_by_role("button", name="Try again")).to_be_disabled()
    page.unroute("**/chat/stream")
    page.clock.fast_forward(601_000)
    expect(page.get_by_role("alert")).to_have_text("You can ask again now.")
    page.get_by_role("button", name="Try again").click()

    settled(page)
    expect(page.locator(".turn.answer")).to_have_count(1)


def test_a_broken_stream_is_resumed(page: Page) -> None:
    """When the connection breaks after the first event, the page resumes the run instead of asking again."""
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.method) if "/chat/stream" in request.url else None)

    def cut(route: Route) -> None:
        first = route.fetch().text().partition("\n\n")[0] + "\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=first)

    page.route("**/chat/stream", cut)
    ask(page, ANSWERED)

    expect(page.locator(".turn.answer")).to_have_count(1)
    assert requests == ["POST", "GET"]


def test_a_conversation_that_is_gone_is_said(page: Page, complaints: Complaints) -> None:
    """The address of a conversation that was deleted leads to the title page, and the reader is told."""
    complaints.expected.append("404")
    page.goto("/?thread=00000000-0000-4000-8000-000000000000")

    expect(page.get_by_text("this conversation does not exist, or it is not yours")).to_be_visible()
    expect(page.locator(".title-page h1")).to_be_visible()


@contextmanager
def server_on(port: int, home: Path) -> Iterator[str]:
    """A server on a port that it gets again after a restart."""
    settings = {"LECTERN_HOME": str(home), "LECTERN_RATE_LIMIT": "0"}
    with serving([LECTERN, "serve", "--port", str(port)], env={**os.environ, **settings}) as address:
        yield address


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A home of its own for a server that is stopped or gets keys."""
    return Path(shutil.copytree(sample_home, tmp_path / "own-home"))


@pytest.fixture
def port() -> int:
    """A port of its own."""
    return free_port()


def test_a_lost_server_comes_back(browser: Browser, home: Path, port: int) -> None:
    """While the server is away the page says so and keeps the question; when it is back, the answer comes."""
    page = browser.new_page(locale="en-GB")
    with server_on(port, home) as address:
        page.goto(address)
        ask(page, ANSWERED)
    send(page, "And what about durability?")
    expect(page.get_by_text("The server cannot be reached.")).to_be_visible()
    expect(page.locator(".question").last).to_have_text("And what about durability?")

    with server_on(port, home):
        # good news go after a while, maybe before this is looked at
        expect(page.locator("#notice")).to_have_text("The server is back.")
        settled(page)

        expect(page.locator(".turn.failed")).to_have_count(0)
        expect(page.locator(".turn")).to_have_count(2)
        page.close()


def test_a_server_killed_in_mid_answer(browser: Browser, home: Path, port: int) -> None:
    """The reader sees that the answer was broken off, however long it is, and the question is there after a reload,
    until another one is asked."""
    held, draft = threading.Event(), "Quality of service has two sides, which both nodes must agree on. [1]\n\n" * 60
    page = browser.new_page(locale="en-GB", viewport={"width": 1280, "height": 800})
    with fake_ai() as ai:
        ai.script(Step(say=drafting(draft), hold=held), then=Step(say=drafting(draft)))
        model = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{ai.url}/v1", "OPENAI_MODEL": "scripted-model"}
        command = [LECTERN, "serve", "--port", str(port)]
        with serving_process(command, env={**os.environ, "LECTERN_HOME": str(home), **model}) as (address, process):
            page.goto(address)
            send(page, ANSWERED)
            expect(page.locator(".answer-text p").nth(25)).to_be_attached(timeout=20_000)  # half of the draft is held
            os.killpg(process.pid, signal.SIGKILL)
            held.set()
            expect(page.get_by_text("Waiting for the server")).to_be_in_viewport()
    with server_on(port, home):
        alert = page.get_by_role("alert")
        expect(alert).to_have_text("The answer was broken off before its end. Ask again.")
        expect(alert).to_be_in_viewport()
        expect(page.get_by_role("button", name="Try again")).to_be_in_viewport(ratio=1)

        for _ in range(2):
            page.reload()
            expect(question_box(page)).to_have_value(ANSWERED)
        question_box(page).press("Enter")
        settled(page)
        expect(page.locator(".turn.answer")).to_have_count(1)
        page.reload()
        expect(page.locator(".turn.answer")).to_have_count(1)
        expect(question_box(page)).to_have_value("")
        page.close()


def test_panels_say_that_the_server_is_gone(page: Page, complaints: Complaints) -> None:
    """Renaming, deleting, saving, listing and searching fail with a remark where they were tried."""
    complaints.expected.append("ERR_INTERNET_DISCONNECTED")
    gone = "The server cannot be reached."
    ask(page, ANSWERED)
    page.get_by_role("button", name="Conversations").click()
    item = page.locator(".conversation-item").first
    item.hover()
    page.context.set_offline(True)

    item.get_by_role("button", name="Save as Markdown").click()
    expect(item.get_by_role("alert")).to_have_text(gone)
    item.get_by_role("button", name="Delete").click()
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alertdialog").get_by_role("alert")).to_have_text(gone)
    page.get_by_role("button", name="Keep it").click()
    item.get_by_role("button", name="Rename").click()
    page.get_by_label("New title").fill("Another title")
    page.get_by_label("New title").press("Enter")
    expect(page.locator(".rename").get_by_role("alert")).to_have_text(gone)
    expect(page.get_by_label("New title")).to_have_value("Another title")
    page.get_by_role("searchbox", name="Search your conversations").fill("duck")
    expect(page.locator("#conversation-list > .problem")).to_have_text(gone)

    page.locator("#conversations").get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Contents").click()
    page.get_by_role("searchbox", name="Search the book").fill("transient local")
    expect(page.locator("#results").get_by_role("alert")).to_have_text(gone)


def test_contents_that_do_not_come_are_said(page: Page, complaints: Complaints) -> None:
    """If the outline was not loaded before the server was lost, the panel says so."""
    complaints.expected += ["ERR_INTERNET_DISCONNECTED", "503"]
    page.route("**/outline", lambda route: route.fulfill(**problem(503, "too many runs")))
    page.reload()
    expect(page.locator(".title-page h1")).to_be_visible()
    page.context.set_offline(True)
    page.unroute("**/outline")

    page.get_by_role("button", name="Contents").click()

    expect(page.locator("#outline").get_by_role("alert")).to_have_text("The server cannot be reached.")


def test_problems_are_told_in_the_readers_language(page: Page, complaints: Complaints) -> None:
    """The server's English is translated by the code of the problem."""
    complaints.expected.append("503")
    page.route(
        "**/books/physical-ai-robotics", lambda route: route.fulfill(json=route.fetch().json() | {"language": "de"})
    )
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    body = {"status": 503, "title": "", "detail": "too many runs", "code": "overloaded"}
    page.route("**/chat/stream", lambda route: route.fulfill(status=503, json=body))
    page.get_by_role("textbox", name="Ihre Frage").fill(ANSWERED)
    page.get_by_role("textbox", name="Ihre Frage").press("Enter")

    expect(page.get_by_role("alert")).to_have_text(
        "Der Server hat zu viel zu tun. Versuchen Sie es gleich noch einmal."
    )


def test_a_key_is_asked_for_and_used(browser: Browser, home: Path) -> None:
    """A server with keys: the page asks for one, a wrong one is said, a right one works and is in no address."""
    key = json.loads(lectern("keys", "create", "--name", "reader", "--json", home=home).stdout)["key"]
    settings = {"LECTERN_HOME": str(home)}
    with serving([LECTERN, "serve", "--port", "0"], env={**os.environ, **settings}) as address:
        page = browser.new_page(locale="en-GB")
        addresses: list[str] = []
        page.on("request", lambda request: addresses.append(request.url))
        page.goto(address)
        box = page.get_by_label("This server needs a key")
        expect(box).to_be_focused()
        for name in ("Contents", "Conversations", "New"):
            expect(page.get_by_role("button", name=name)).to_be_disabled()
        page.locator(".wordmark").press("/")
        expect(page.locator("dialog[open]")).to_have_count(0)
        box.fill("wrong")
        page.get_by_role("button", name="Continue").click()
        expect(page.get_by_role("alert")).to_contain_text("The key was not accepted.")

        box.fill(key)
        page.get_by_role("button", name="Continue").click()
        expect(page.locator(".title-page h1")).to_have_text("Physical AI & Humanoid Robotics")
        expect(box).to_be_hidden()
        ask(page, ANSWERED)
        expect(page.locator(".turn.answer")).to_have_count(1)

        assert not [url for url in addresses if key in url]
        page.close()


def test_a_question_survives_a_missing_key(page: Page, complaints: Complaints) -> None:
    """If a key is wanted in the middle, the question is in the box when the key is there."""
    complaints.expected.append("401")
    page.route("**/chat/stream", lambda route: route.fulfill(**problem(401, "a good key is needed")))
    send(page, ANSWERED)
    expect(page.get_by_role("alert")).to_contain_text("needs a key")

    page.unroute("**/chat/stream")
    page.get_by_label("This server needs a key").fill("k")
    page.get_by_role("button", name="Continue").click()

    expect(question_box(page)).to_have_value(ANSWERED)
