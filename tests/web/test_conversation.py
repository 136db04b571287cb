"""A reader asks, reads, follows up, and finds everything again."""

from __future__ import annotations

import json
import re
import threading
import uuid
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.answering.scripted import drafting, is_judging
from tests.fakeai import Step
from tests.web.conftest import ScriptedSite, needs_browser
from tests.web.reading import ANSWERED, REFUSED, ask, question_box, send, settled

pytestmark = [pytest.mark.browser, needs_browser]
DRAFT = """Quality of service has **two sides**: a subscriber requests and a publisher offers. [1]

## In short

- *Reliable* means that lost packets are sent again. [2]
- *Best effort* means that they are not. [2]

```python
qos = QoSProfile(depth=10)
```

| Policy | Default |
|---|---|
| Depth | 10 |
"""


def writing(draft: str) -> Step:
    """A model that writes this draft, and as judge says nothing."""
    return Step(say=drafting(draft))


def test_an_answer_has_notes_and_ticks(page: Page) -> None:
    """The answer is rendered text with markers; each marker has its note, each confirmed claim its tick."""
    turn = ask(page, ANSWERED)

    expect(turn.get_by_role("heading", name=ANSWERED)).to_be_visible()
    expect(turn.locator("a.cite").first).to_have_text("1")
    expect(turn.locator(".answer-text em", has_text="Transient local")).to_be_visible()
    expect(turn.locator(".tick").first).to_have_attribute("aria-label", re.compile("^The book: “Reliable means"))
    expect(turn.locator(".note").first).to_contain_text("Quality of Service")
    expect(turn.locator(".note").first).to_contain_text("lost packets are sent again")
    expect(turn.locator("summary", has_text="The book covers this").first).to_be_visible()


def test_notes_stand_in_the_margin_beside_their_markers(page: Page) -> None:
    """On a wide screen a note is beside the text, at the height of its marker, and none covers another."""
    turn = ask(page, ANSWERED)
    text, marker = turn.locator(".answer-text").bounding_box(), turn.locator("a.cite").first.bounding_box()
    notes = [note.bounding_box() for note in turn.locator(".note").all()]

    assert text
    assert marker
    assert notes[0]
    assert notes[0]["x"] > text["x"] + text["width"]
    assert abs(notes[0]["y"] - marker["y"]) < 30
    assert all(second["y"] >= first["y"] + first["height"] for first, second in pairwise(notes))


def test_a_marker_unfolds_a_footnote_on_a_phone(page: Page) -> None:
    """Where there is no margin, a tap on a marker shows the passage below the paragraph, and another folds it."""
    page.set_viewport_size({"width": 390, "height": 800})
    turn = ask(page, ANSWERED)
    marker = turn.locator("a.cite").first

    marker.click()
    expect(turn.locator(".footnote")).to_contain_text("lost packets are sent again")
    expect(marker).to_have_attribute("aria-expanded", "true")

    marker.click()
    expect(turn.locator(".footnote")).to_have_count(0)


def test_the_reason_for_the_confidence_is_shown_on_demand(page: Page) -> None:
    """Confidence is said in words; its reason unfolds."""
    turn = ask(page, ANSWERED)
    reason = turn.get_by_text("Statements that the cited words confirm")
    expect(reason).to_be_hidden()

    turn.locator("summary", has_text="The book covers this").first.click()

    expect(reason).to_be_visible()


def test_a_refusal_offers_lessons(page: Page) -> None:
    """A refusal is plain, cites nothing, and leads to the nearest lessons."""
    turn = ask(page, REFUSED)

    expect(turn.locator(".answer-text")).to_have_text("I couldn't find that information in the book.")
    expect(turn.locator("a.cite")).to_have_count(0)
    expect(turn.get_by_role("heading", name="The nearest lessons")).to_be_visible()
    expect(turn.locator(".lesson-list a")).to_have_count(3)


def test_a_refusal_says_where_else_the_answer_is(page: Page) -> None:
    """Lessons that the filters hide come before those that are merely near; another book is one click away."""

    def hide(route: Route) -> None:
        head, _, data = route.fetch().text().rpartition("data: ")
        lesson = {"title": "The gripper", "url": "/x", "parent_doc_id": str(uuid.uuid4())}
        reply = json.loads(data.partition("\n")[0]) | {"outside_scope": [lesson], "other_books": ["cooking"]}
        route.fulfill(status=200, content_type="text/event-stream", body=f"{head}data: {json.dumps(reply)}\n\n")

    page.route("**/chat/stream", hide)
    turn = ask(page, REFUSED)

    expect(turn).to_contain_text("Your filters hide lessons that have it")
    expect(turn.get_by_role("link", name="The gripper")).to_be_visible()
    expect(turn.get_by_role("button", name="Ask without filters")).to_be_visible()
    expect(turn.get_by_role("button", name="Ask “cooking”, which covers this")).to_be_visible()
    expect(turn).not_to_contain_text("The nearest lessons")


def test_a_conversation_has_an_address(page: Page, server: str) -> None:
    """Two questions are one thread; its address shows them again, back leads to the title page and forward back."""
    ask(page, ANSWERED)
    expect(page).to_have_url(re.compile(r"\?thread=[0-9a-f-]{36}$"))
    address = page.url
    ask(page, "And what about durability?")

    page.goto(address)
    expect(page.locator(".turn")).to_have_count(2)
    settled(page)
    page.go_back()
    expect(page.locator(".turn")).to_have_count(0)
    page.go_forward()
    expect(page.locator(".turn")).to_have_count(2)
    page.get_by_role("button", name="New").click()
    expect(page.locator(".turn")).to_have_count(0)
    expect(page.locator(".title-page h1")).to_have_text("Physical AI & Humanoid Robotics")
    page.go_back()
    expect(page.locator(".turn")).to_have_count(2)

    thread = address.partition("thread=")[2]
    assert httpx.get(f"{server}/threads/{thread}", timeout=120).json()["turn_count"] == 2


def test_a_draft_is_rendered_while_it_is_written(scripted: ScriptedSite, scripted_page: Page) -> None:
    """The answer grows block by block as rendered Markdown, and the end changes nothing that was shown."""
    held = threading.Event()
    scripted.ai.script(Step(say=writing(DRAFT).say, hold=held), then=writing(DRAFT))
    send(scripted_page, ANSWERED)
    turn = scripted_page.locator(".turn")

    expect(turn.locator(".answer-text strong")).to_have_text("two sides")
    expect(turn).to_have_attribute("aria-busy", "true")
    top = turn.locator(".answer-text strong").bounding_box()
    held.set()
    settled(scripted_page)

    assert turn.locator(".answer-text strong").bounding_box() == top
    expect(turn.locator("h2, h3, h4").filter(has_text="In short")).to_be_visible()
    expect(turn.locator("figure.listing")).to_contain_text("QoSProfile")
    expect(turn.get_by_role("button", name="Copy", exact=True)).to_be_visible()
    expect(turn.locator("table td").first).to_have_text("Depth")


def test_a_reader_can_stop_an_answer(scripted: ScriptedSite, scripted_page: Page) -> None:
    """Stop ends the run at the server, what was written stays, and the question can be asked again."""
    held = threading.Event()
    scripted.ai.script(Step(say=writing(DRAFT).say, hold=held), then=writing(DRAFT))
    send(scripted_page, ANSWERED)
    expect(scripted_page.locator(".answer-text strong")).to_be_visible()

    with scripted_page.expect_response("**/cancel") as cancelled:
        scripted_page.get_by_role("button", name="Stop").click()

    assert cancelled.value.json()["state"] == "cancelled"
    expect(scripted_page.get_by_text("You stopped this answer.")).to_be_visible()
    expect(scripted_page.locator(".answer-text strong")).to_be_visible()
    held.set()
    scripted_page.get_by_role("button", name="Try again").click()
    settled(scripted_page)
    expect(scripted_page.locator(".turn.answer")).to_have_count(1)


def test_a_reload_in_mid_answer_goes_on(scripted: ScriptedSite, scripted_page: Page) -> None:
    """The page that is loaded again follows the same run: the model is asked once."""
    held = threading.Event()
    scripted.ai.received.clear()
    scripted.ai.script(Step(say=writing(DRAFT).say, hold=held), then=writing(DRAFT))
    send(scripted_page, ANSWERED)
    expect(scripted_page.locator(".answer-text strong")).to_be_visible()

    scripted_page.reload()
    expect(scripted_page.locator(".answer-text strong")).to_have_text("two sides")
    expect(scripted_page.get_by_role("heading", name=ANSWERED)).to_be_visible()
    held.set()
    settled(scripted_page)

    expect(scripted_page.locator(".turn.answer")).to_have_count(1)
    drafts = [each for each in scripted.ai.received if each.path.endswith("completions") and not is_judging(each.body)]
    assert len(drafts) == 1


def test_a_doubtful_claim_has_a_flag_with_its_reason(scripted: ScriptedSite, scripted_page: Page) -> None:
    """Behind a claim that the passages contradict there is a flag, and it says why."""
    true = "Subscribers request, publishers offer; a best effort publisher never satisfies a reliable subscriber. [1]"
    scripted.ai.script(then=writing(f"{true} The sensor data profile is best effort with depth 25. [1]"))
    turn = ask(scripted_page, ANSWERED)

    turn.get_by_role("button", name="Doubtful: show why").click()

    expect(turn.locator(".doubt")).to_contain_text("Doubtful. This number is not in the passage.")
    expect(turn.locator(".tick")).to_have_count(1)


def test_the_page_says_why_an_answer_is_weak(scripted: ScriptedSite, scripted_page: Page) -> None:
    """If verdicts lowered its level, it says that parts are not confirmed; removed links are counted."""
    true = "Subscribers request, publishers offer; a best effort publisher never satisfies a reliable subscriber. [1]"
    doubtful = "The sensor data profile is best effort with depth 25. [1]"
    scripted.ai.script(then=writing(f"{true} {doubtful} See [here](https://evil.example/x)."))
    turn = ask(scripted_page, ANSWERED)

    expect(turn.locator(".answer-text")).to_contain_text("The book does not confirm parts of this answer, so check")
    expect(turn.locator(".confidence summary")).to_have_text("The book does not confirm parts of this answer")
    expect(turn.locator(".remark")).to_have_text("1 link was removed: the book does not have it.")


def test_the_page_says_that_a_draft_was_withdrawn(scripted: ScriptedSite, scripted_page: Page) -> None:
    """The sentence stays, and the reason is below it."""
    scripted.ai.script(then=writing("The gripper was invented in Atlantis by dolphins. [1]"))
    turn = ask(scripted_page, ANSWERED)

    expect(turn.locator(".answer-text")).to_have_text("I couldn't find that information in the book.")
    expect(turn.locator(".withdrawn")).to_contain_text("it was withdrawn: its claims do not rest on the book.")


def test_a_question_may_have_several_lines(page: Page) -> None:
    """Shift and Enter break the line, Enter sends, and the box grows with its text."""
    box = question_box(page)
    before = box.bounding_box()
    box.press_sequentially("What is a node?")
    box.press("Shift+Enter")
    box.press_sequentially("And a topic?")
    after = box.bounding_box()
    assert before
    assert after
    assert after["height"] > before["height"]

    box.press("Enter")

    settled(page)
    expect(page.locator(".question")).to_have_text("What is a node?\nAnd a topic?")
    expect(box).to_have_value("")


def test_a_question_can_be_edited_and_an_answer_copied(page: Page) -> None:
    """Edit puts the question back into the box; copy takes the answer with its sources."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    turn = ask(page, ANSWERED)

    turn.get_by_role("button", name="Copy the answer").click()
    expect(turn.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("*Reliable* means that lost packets are sent again")
    assert "[1] The Robotic Nervous System › Chapter 1" in copied

    turn.get_by_role("button", name="Edit the question").click()
    expect(question_box(page)).to_have_value(ANSWERED)
    expect(question_box(page)).to_be_focused()


def test_a_double_click_sends_once(page: Page) -> None:
    """However fast the button is pressed, one question is asked."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/chat/stream") else None)
    question_box(page).fill(ANSWERED)

    page.get_by_role("button", name="Ask", exact=True).dblclick()
    settled(page)

    assert len(asked) == 1
    expect(page.locator(".turn")).to_have_count(1)
