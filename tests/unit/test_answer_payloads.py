"""No draft of a model brings anything active into a page, wherever the stream cuts it."""

from __future__ import annotations

from functools import partial

import pytest

from lectern.rendering.answers import GrowingAnswer
from tests.unit.payloads import VECTORS
from tests.unit.test_lesson_payloads import ATTRIBUTES, Inspector

DRAFTS = {
    "paragraph": "The book says {} here. [1]",
    "list": "- The book says\n- {}\n",
    "table": "| A | B |\n|---|---|\n| {} | b |\n",
    "link": "[The book]({}) and [{}](https://example.org)",
    "listing": "```python\n{}\n```\n",
    "formula": "$x = {}$ and $${}$$",
}


def blocks_cut_at(draft: str, cut: int) -> list[str]:
    """Everything that a page is sent of a draft that comes in two pieces, each shown at once."""
    answer = GrowingAnswer()
    steps = [partial(answer.add, draft[:cut]), answer.rest, partial(answer.add, draft[cut:]), answer.rest]
    return [block.html for step in steps for block in step()]


@pytest.mark.parametrize("place", DRAFTS)
def test_a_payload_stays_text_wherever_it_is_cut(place: str) -> None:
    """Each payload, cut at each character, shows only elements, attributes and addresses that the page expects."""
    findings = {}
    for vector in VECTORS:
        draft = DRAFTS[place].format(vector, vector)
        start = draft.index(vector)
        for cut in range(start, start + len(vector) + 1):
            unexpected = Inspector("".join(blocks_cut_at(draft, cut))).findings
            if unexpected := [finding for finding in unexpected if finding != "<a data-source>"]:
                findings[vector, cut] = unexpected

    assert findings == {}
    assert "data-source" not in ATTRIBUTES  # markers are in answers alone


def test_every_character_may_come_alone() -> None:
    """A draft of all payloads, shown after each character, is text at every moment."""
    answer = GrowingAnswer()
    for character in "\n\n".join(VECTORS):
        for block in [*answer.add(character), *answer.rest()]:
            assert Inspector(block.html).findings == [], block.html
