"""A wider filter never finds less: `total_found` of real searches in the sample book."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from lectern import Settings, open_lectern
from lectern.domain.scope import Scope, SearchMode

QUERIES = (
    "how do nodes communicate",
    "quality of service of a topic",
    "What is a transform?",
    "simulation in Gazebo",
    "zebra crossing",
)
WIDER = {"module": None, "chapters": None, "lesson": None, "levels": None, "tier": 4}


def narrow_scope(draw: random.Random) -> Scope:
    """Some filters of a reader."""
    filters = {
        "module": draw.choice([None, "ros2", "gazebo"]),
        "chapters": draw.choice([None, (1, 2), (2, None), (None, 3)]),
        "lesson": draw.choice([None, None, None, 1]),
        "levels": draw.choice([None, ("A1", "A2"), ("B1",)]),
        "tier": draw.choice([1, 2, 3, 4]),
    }
    return Scope(book_id="physical-ai-robotics", **filters)


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
async def test_total_found_never_falls_when_a_filter_widens(sample_home: Path, mode: SearchMode) -> None:
    """Filters are removed one after the other, in any order, with and without a threshold."""
    draw = random.Random(5)  # among its scopes are some where counting every proposed chunk does fall
    async with open_lectern(Settings(home=sample_home)) as lectern:
        for _ in range(25):
            text, threshold, limit = draw.choice(QUERIES), draw.choice([None, 0.5, 0.7]), draw.choice([1, 5, 20])
            scope, totals = narrow_scope(draw), []
            for name in [None, *draw.sample(sorted(WIDER), len(WIDER))]:
                scope = replace(scope, **({name: WIDER[name]} if name else {}))
                findings = await lectern.search(
                    text, scope=scope, limit=limit, mode=mode, similarity_threshold=threshold
                )
                totals.append(findings.total_found)
                assert len(findings.hits) == min(limit, findings.total_found)
            assert totals == sorted(totals), (text, threshold, limit, scope)


async def test_copies_of_a_text_do_not_hide_what_a_narrower_filter_finds(tmp_path: Path) -> None:
    """Forty copies are nearest to the query and are one result; the other lessons are found with and without them."""
    for number in range(40):
        write(tmp_path / "book" / "copies" / f"{number:02}.md", "# Nodes\n\nA node talks to another node.\n")
    for number in range(5):
        write(tmp_path / "book" / "hands" / f"{number}.md", f"# Hand {number}\n\nHand number {number} closes slowly.\n")
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(tmp_path / "book", book="book")
        narrow, wide = [
            await lectern.search("how does a node talk to another node", scope=Scope(module=module))
            for module in ("hands", None)
        ]

    assert narrow.total_found == 5
    assert wide.total_found == 6


def write(file: Path, text: str) -> None:
    """A lesson."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
