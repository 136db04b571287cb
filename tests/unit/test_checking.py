"""A finished draft: each claim gets a verdict, markers are numbered and corrected, and the level follows the verdicts.
The judge here is scripted, so that each rule can be seen alone."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lectern.answering import checking as checking_module
from lectern.answering.checking import (
    HIDDEN,
    SAYS_NOTHING,
    SAYS_OTHERWISE,
    CheckedClaim,
    Checking,
    FinishedText,
    finish,
    level_cap,
    sent_statement,
)
from lectern.answering.confidential import Confidential
from lectern.answering.draft import Draft
from lectern.domain.evidence import ConfidenceLevel
from lectern.domain.replies import Judgement, Removals, Verdict
from lectern.grounding.answer_claims import claims_of
from lectern.grounding.judge import QUOTED
from lectern.ports.answering import OpenClaim, Opinion, Usage
from tests.making import chunk, hit, numbers_in

PASSAGES = {number: hit(chunk(f"Passage {number} says a thing about topic {number}.")) for number in range(1, 5)}
LISTING = hit(chunk("Type this:\n\n```\npump start --now\npump stop --now\n```\n"))


class TopicJudge:
    """A claim is supported by a passage with its topic, doubtful if it begins with `Wrong`, softly so if it begins with
    `Odd`, and else unconfirmed. A claim with the number 42 is vetoed."""

    def __init__(self) -> None:
        self.claims: list[str] = []

    async def judge(self, claim: str, passages: Sequence[str]) -> Judgement:
        """The verdict on one claim."""
        self.claims.append(claim)
        if claim.startswith("Wrong"):
            return Judgement(verdict="doubtful", support=0.0, evidence="the book", passage=0, reason="Another number.")
        if claim.startswith("Odd"):
            return Judgement(verdict="doubtful", support=0.1, reason="Not said.", is_soft=True)
        topic = re.search(r"topic \d", claim)
        for place, passage in enumerate(passages):
            if topic and topic[0] in passage:
                return Judgement(verdict="supported", support=QUOTED, evidence=f"about {topic[0]}", passage=place)
        return Judgement(verdict="unconfirmed", support=0.3)

    async def vetoes(self, claim: str, passages: Sequence[str]) -> bool:
        """Whether the claim has the forbidden number."""
        return "42" in claim


class ScriptedModel:
    """A language model as judge that was told what to say."""

    def __init__(self, *opinions: Opinion | None) -> None:
        self._opinions = list(opinions)
        self.calls: list[tuple[Sequence[OpenClaim], Mapping[int, str]]] = []

    async def opinions(
        self, claims: Sequence[OpenClaim], passages: Mapping[int, str]
    ) -> tuple[list[Opinion | None], Usage]:
        """What was told."""
        self.calls.append((claims, passages))
        return self._opinions, Usage(tokens=7)


def opinion(verdict: str, quote: str = "", passage: int | None = None) -> Opinion:
    """What the model says of a claim."""
    return Opinion(verdict=verdict, quote=quote, passage=passage)  # type: ignore[arg-type]  # a plain string names the verdict


def draft_of(text: str) -> Draft:
    """A draft as it was sent."""
    draft = Draft(
        passages=lambda: tuple(PASSAGES.values()),
        passage=PASSAGES.get,
        confidential=Confidential([], []),
        question="What about topics?",
    )
    draft.feed(text)
    draft.finish()
    return draft


async def checked(
    text: str,
    model: ScriptedModel | None = None,
    passages: Mapping[int, object] = PASSAGES,
    judge: TopicJudge | None = None,
) -> tuple[Checking, list[tuple[int, CheckedClaim]]]:
    """A draft with its verdicts, and the verdicts as they came."""
    draft = draft_of(text)
    sent_text, _ = draft.finished_text(list(PASSAGES.values()))
    checking = Checking(
        text=sent_text,
        reader_numbers=draft.numbers,
        passages=passages,
        judge=judge or TopicJudge(),  # type: ignore[arg-type]  # a scripted judge
    )
    return checking, [event async for event in checking.run(model)]


async def finished(
    text: str, *, hide: bool = False, before: str = "", model: ScriptedModel | None = None
) -> FinishedText:
    """A draft as it is in the reply."""
    checking, _ = await checked(text, model)
    return finish(checking, hide_doubtful=hide, before=before)


def verdicts(done: FinishedText) -> list[Verdict]:
    """The verdicts in a reply."""
    return [statement.verdict for statement in done.statements]


async def test_markers_are_renumbered_by_first_mention() -> None:
    """In a finished reply `[n]` is the n-th source."""
    done = await finished("First about topic 3 [3]. Second about topic 1 [1]. Third about topic 3 [3].")

    assert done.text == "First about topic 3 [1]. Second about topic 1 [2]. Third about topic 3 [1]."
    assert [source.hit.chunk.text[:9] for source in done.citations] == ["Passage 3", "Passage 1"]
    assert [source.number for source in done.citations] == [1, 2]
    assert done.corrected == 0


async def test_a_marker_we_never_issued_is_removed_and_counted_and_its_sentence_stays() -> None:
    """An invented number leaves no trace; what it stood with is shown, and rests on nothing because of it. `[0]` is an
    array: passages are numbered from 1."""
    draft = draft_of("It says topic 2 [2]. Half of it is topic 2 [2][9]. Nobody said so [9], [0] and [77] of [0, 1].")

    assert draft.text == "It says topic 2 [1]. Half of it is topic 2 [1]. Nobody said so, [0] and of [0, 1]."
    assert draft.removals == Removals(invented_citations=3)
    done = await finished("It says topic 2 [2]. Vague tanks leak quietly [9].")
    assert done.text == "It says topic 2 [1]. Vague tanks leak quietly."
    assert verdicts(done) == ["supported", "unconfirmed"]
    assert [statement.citations for statement in done.statements] == [(1,), ()]


async def test_a_new_number_leaves_what_stands_beside_it() -> None:
    """A colon, a letter or a bracket after a renumbered marker stays where it was."""
    text = "These say it [3]: topic 3 [3](as said) and `x`[2]`y` (topic 2[2])."

    assert (
        draft_of(text.replace("[3](", "[3] (")).text
        == "These say it [1]: topic 3 [1] (as said) and `x`[2]`y` (topic 2[2])."
    )


async def test_several_numbers_in_one_marker_are_taken_apart() -> None:
    """`[1, 2]` cites two passages."""
    done = await finished("Both of them say topic 2 [1, 2].")

    assert done.text == "Both of them say topic 2 [1][2]."
    assert done.statements[0].citations == (1, 2)


@pytest.mark.parametrize(
    ("marker", "sent"),
    [
        ("[1-3]", "[1][2][3]"), ("[2–4]", "[1][2][3]"), ("[1, 3-4]", "[1][2][3]"), ("[1; 4]", "[1][2]"),
        ("[2-2]", "[1]"), ("[3, 3]", "[1]"),
    ],
)  # fmt: skip
async def test_a_range_of_given_passages_cites_each_of_them(marker: str, sent: str) -> None:
    """With either dash, alone or in a list."""
    assert draft_of(f"All of them say it {marker}.").text == f"All of them say it {sent}."


@pytest.mark.parametrize(
    "values", ["[0, 1]", "[1, 10]", "[1-9]", "[3-1]", "[1-2000]", "[2, 5, 7]", "[2020-2024]", "[0-3]", "[5, 6]"]
)
async def test_numbers_of_which_one_was_never_given_are_values(values: str) -> None:
    """An interval, an array or years: they stay as they were written, and count for nothing."""
    draft = draft_of(f"It says topic 2 between {values} there [2].")

    assert draft.text == f"It says topic 2 between {values} there [1]."
    assert draft.removals == Removals()
    assert (await finished(draft.text)).text == f"It says topic 2 between {values} there [1]."


@pytest.mark.parametrize(
    "text",
    [
        "Topic 2 takes x = [1, 2] there.", "Topic 2 takes x ∈ [1, 3] there.", "Topic 2 takes $f: [1, 2] \\to R$ there.",
        "Topic 2 takes \\(x \\in [1, 2]\\) there.", "Topic 2 is in the range [1, 3] there.",
        "Topic 2 has the list [1, 2, 3] there.",
        "Topic 2 takes `x[1, 2]` there.", "Topic 2 is in the interval [1–3] there.", "Topic 2:\n\n```\nx[1, 2]\n```",
    ],
)  # fmt: skip
async def test_values_in_code_and_formulas_are_no_markers(text: str) -> None:
    """Although each of the numbers was given."""
    assert draft_of(text).text == text


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("It shows the topic [[1]]. It says topic 3 [[3]][[1]].", "It shows the topic [1]. It says topic 3 [2][1]."),
        ("It says topic 1.[^1] It says topic 3[^3].", "It says topic 1.[1] It says topic 3[2]."),
        ("It is the first topic¹. The tank has leaks.²", "It is the first topic[1]. The tank has leaks.[2]"),
        ("It says topic 1 (Passage 1). It says topic 3 (see passage 3).", "It says topic 1 [1]. It says topic 3 [2]."),
        ("It says topic 1 (Source: 1). It says topic 3 (Document 3).", "It says topic 1 [1]. It says topic 3 [2]."),
        ("It says topic 1 \\[1\\]. It says topic 3 \\[3\\].", "It says topic 1 [1]. It says topic 3 [2]."),
    ],
)
async def test_markers_of_other_forms_are_citations(text: str, sent: str) -> None:
    """Two brackets, names in round ones, escaped ones, and marks of notes that are nowhere written."""
    done = await finished(text)

    assert done.text == sent
    assert [len(statement.citations) for statement in done.statements] == [1, 2 if "[[3]][[1]]" in text else 1]


@pytest.mark.parametrize(
    "text",
    [
        "It says topic 1 [1] of [[1, 2], [3, 4]], x = [[1]] and a[[2]].",
        "It says topic 1 [1] of 5 m² and 3 km³ and 10⁻³.",
        "It says topic 1 [1].[^1]\n\n[^1]: A note about topic 1 [1].",
        "It says topic 1 [1] in `word[^2]`.\n\n```\nword[^2]\n```",
        "It says topic 1 [1] in `(Passage 2)` and (document 2 of 3), (results 77) and (source code 1).",
    ],
)
async def test_matrices_powers_and_written_notes_stay(text: str) -> None:
    """They cite nothing."""
    assert (await finished(text)).text.startswith(text)


@pytest.mark.parametrize("mark", ["[^1]", "¹", " (1)", " (Passage 1)", " \\[1\\]"])
async def test_marks_of_notes_are_no_part_of_a_claim(mark: str) -> None:
    """A sentence is judged without them."""
    note = "\n\n[^1]: A note about the first topic." if "^" in mark else ""
    claims = claims_of(f"The pump starts at six{mark}. It leaks a little{mark}.{note}")

    assert [claim.text for claim in claims[:2]] == ["The pump starts at six.", "It leaks a little."]


@pytest.mark.parametrize("size", [1, 5, 200])
def test_a_fence_around_the_whole_answer_is_taken_off(size: int) -> None:
    """The answer is Markdown, not a listing; the listings in it stay."""
    inside = "It says topic 1 [1].\n\n```bash\npump start\n```\n\nThen it is topic 2 [2]."
    draft = Draft(lambda: tuple(PASSAGES.values()), PASSAGES.get, Confidential([], []), question="")
    wrapped = f"```markdown\n{inside}\n```\n"
    for place in range(0, len(wrapped), size):
        draft.feed(wrapped[place : place + size])
    draft.finish()

    assert draft.text == inside


async def test_a_price_begins_no_formula() -> None:
    """A citation after a price is a citation."""
    assert draft_of("It costs $5 there [1, 2], not $6 [3, 4].").text == "It costs $5 there [1][2], not $6 [3][4]."


async def test_nothing_is_taken_out_and_nothing_is_written_into_the_text() -> None:
    """Doubtful and unconfirmed claims, leads, headings and words about the book are shown as they were written."""
    text = (
        "## Topics\n\nYes. It is about topic 1 [1]. Wrong is this one here [2]. Vague words stand there [3].\n\n"
        "There are two of them:\n\n- topic 1 is one [1]\n- Wrong is the other [2]\n\nThe book does not compare them."
    )
    done = await finished(text)

    assert done.text == text
    assert verdicts(done) == ["supported", "doubtful", "unconfirmed", "supported", "doubtful"]
    assert done.hidden == 0
    assert "unverified" not in done.text


async def test_a_statement_carries_its_position_and_what_the_book_says() -> None:
    """`text[start:end]` is the claim in the reply, after the disclaimer, with its final markers."""
    before = "Read with care.\n\n"
    done = await finished(
        "It is about topic 3 [3]. Wrong is this one here [2]. Vague words stand there [3].", before=before
    )

    assert done.text.startswith(before)
    assert [done.text[statement.start : statement.end] for statement in done.statements] == [
        "It is about topic 3 [1].",
        "Wrong is this one here [2].",
        "Vague words stand there [1].",
    ]
    assert all(statement.text == done.text[statement.start : statement.end] for statement in done.statements)
    supported, doubtful, unconfirmed = done.statements
    assert (supported.evidence, supported.chunk_id) == ("about topic 3", PASSAGES[3].chunk.id)
    assert (doubtful.evidence, doubtful.reason) == ("the book", "Another number.")
    assert (unconfirmed.evidence, unconfirmed.chunk_id, unconfirmed.reason) == ("", None, "")


async def test_a_verdict_event_has_the_position_in_the_text_that_was_sent() -> None:
    """A page that shows the stream finds the claim there, before markers are corrected."""
    checking, events = await checked("It is about topic 3 [3]. Vague words stand there [2].")
    statements = [sent_statement(checking.text, claim, checking.reader_numbers, 10) for _, claim in events]

    assert [number for number, _ in events] == [0, 1]
    assert [checking.text[one.start - 10 : one.end - 10] for one in statements] == [one.text for one in statements]
    assert [one.citations for one in statements] == [(1,), (2,)]


async def test_a_marker_that_does_not_fit_is_corrected_and_counted() -> None:
    """A model that counts from zero gets its claims matched to the passages that bear them."""
    done = await finished("It is about topic 2 [1]. Then comes topic 3 [2]. At last there is topic 4 [3].")

    assert done.text == "It is about topic 2 [1]. Then comes topic 3 [2]. At last there is topic 4 [3]."
    assert [source.hit.chunk.text[:9] for source in done.citations] == ["Passage 2", "Passage 3", "Passage 4"]
    assert (done.corrected, verdicts(done)) == (3, ["supported"] * 3)


async def test_two_markers_that_do_not_fit_become_one() -> None:
    """All markers of a corrected claim are replaced by that of the passage that bears it."""
    done = await finished("It is about topic 4 [1][2]. It is about topic 1 [1].")

    assert done.text == "It is about topic 4 [1]. It is about topic 1 [2]."
    assert [source.hit.chunk.text[:9] for source in done.citations] == ["Passage 4", "Passage 1"]


async def test_an_answer_without_markers_gets_those_of_the_passages_that_bear_it() -> None:
    """Only supported claims get one; the others stay as they are."""
    done = await finished("It is about topic 3. Vague words stand there. It is about topic 1.")

    assert done.text == "It is about topic 3. [1] Vague words stand there. It is about topic 1. [2]"
    assert [source.hit.chunk.text[:9] for source in done.citations] == ["Passage 3", "Passage 1"]
    assert [statement.citations for statement in done.statements] == [(1,), (), (2,)]
    assert all(done.text[one.start : one.end] == one.text for one in done.statements)
    assert done.corrected == 0


async def test_nothing_is_cited_that_no_passage_bears() -> None:
    """Without a marker and without support there is no source."""
    assert (await finished("Vague words stand there. Wrong is this one here.")).citations == ()


async def test_hidden_claims_leave_an_ellipsis_and_are_counted() -> None:
    """Their markers go with them, and what comes after is numbered and placed as if they had never been."""
    done = await finished("It is about topic 1 [1]. Wrong is this one here [4]. It is about topic 2 [2].", hide=True)

    assert done.text == f"It is about topic 1 [1]. {HIDDEN} It is about topic 2 [2]."
    assert (done.hidden, verdicts(done)) == (1, ["supported", "supported"])
    assert [source.hit.chunk.text[:9] for source in done.citations] == ["Passage 1", "Passage 2"]
    assert all(done.text[one.start : one.end] == one.text for one in done.statements)


async def test_a_listing_is_judged_by_every_passage() -> None:
    """Whatever it cites; its text stays as it is, indices in it cite nothing."""
    text = "It is about topic 1 [1].\n\n```bash\npump start --now\nvalves[0] = <b>1</b>  # https://a.b\n```\n[1]"
    checking, _ = await checked(text, passages={**PASSAGES, 5: LISTING})
    done = finish(checking, hide_doubtful=False)
    copied, _ = await checked(
        "It is about topic 1 [1].\n\n```\npump start --now\n```", passages={**PASSAGES, 5: LISTING}
    )

    assert done.text == text
    assert copied.claims[-1].judgement.verdict == "supported"
    assert copied.claims[-1].hit is LISTING


async def test_what_no_fence_closes_is_shown_and_judged() -> None:
    """A listing that a model left open is a listing all the same."""
    done = await finished("It is about topic 1 [1].\n\n```python\nx = 1\ny = 3")

    assert done.text == "It is about topic 1 [1].\n\n```python\nx = 1\ny = 3"
    assert done.statements[-1].text == "```python\nx = 1\ny = 3"


async def test_the_books_own_words_are_not_tidied() -> None:
    """A blank before a full stop is the author's."""
    text = "The Board of topic 2 . [1] Run `ls .` on topic 2 now. [1]"
    assert (await finished(text.replace("[1]", "[2]"))).text == text


def claim_with(verdict: Verdict, *, is_grounded: bool, is_soft: bool = False, support: float = 0.5) -> CheckedClaim:
    """A claim with this verdict."""
    [claim] = claims_of("The pump starts at six.")
    judgement = Judgement(verdict=verdict, support=support, is_soft=is_soft)
    return CheckedClaim(claim=claim, judgement=judgement, hit=None, passages=(), is_grounded=is_grounded)


SOFT, FREE = (
    claim_with("doubtful", is_grounded=True, is_soft=True),
    claim_with("unconfirmed", is_grounded=True, support=0.2),
)
SUPPORTED, RESTING, LOOSE, DOUBTFUL = (
    claim_with("supported", is_grounded=True),
    claim_with("unconfirmed", is_grounded=True),
    claim_with("unconfirmed", is_grounded=False),
    claim_with("doubtful", is_grounded=False),
)


@pytest.mark.parametrize(
    ("claims", "level"),
    [
        ([SUPPORTED] * 5, "high"),
        ([RESTING] * 5, "medium"),
        ([SUPPORTED, LOOSE, LOOSE], "high"),
        ([SUPPORTED] * 9 + [DOUBTFUL], "medium"),
        ([SUPPORTED] * 3 + [DOUBTFUL], "medium"),
        ([SUPPORTED] * 2 + [DOUBTFUL], "low"),
        ([SUPPORTED, DOUBTFUL], "low"),
        ([SUPPORTED, DOUBTFUL, DOUBTFUL], "insufficient"),
        ([DOUBTFUL], "insufficient"),
        ([LOOSE] * 3, "insufficient"),
        ([SOFT] * 3, "low"),
        ([SUPPORTED] * 9 + [SOFT], "medium"),
        ([SOFT, SOFT, DOUBTFUL], "low"),
        ([SUPPORTED, FREE], "medium"),
        ([FREE] * 3, "medium"),
    ],
)
def test_the_level_is_not_above_what_the_claims_bear(claims: list[CheckedClaim], level: ConfidenceLevel) -> None:
    """One doubtful claim, or none that is confirmed: medium at most; a third of them doubtful: low; most of them on
    concrete evidence, or none that is grounded: a refusal."""
    assert level_cap(claims, Removals(invented_citations=3, characters=2)) == level


@pytest.mark.parametrize(("claims", "level"), [([LOOSE] * 3, "medium"), ([DOUBTFUL] * 3, "insufficient")])
def test_a_marker_anywhere_makes_a_draft_cited(claims: list[CheckedClaim], level: ConfidenceLevel) -> None:
    """A marker on a heading or label is no claim's own, but only concrete evidence withdraws such a draft."""
    assert level_cap(claims, Removals(), is_cited=True) == level


@pytest.mark.parametrize("removals", [Removals(links=1), Removals(blocked=1)])
def test_a_draft_with_links_of_its_own_or_instructions_is_not_of_high_confidence(removals: Removals) -> None:
    """Whatever its claims are: its model does not keep to its task."""
    assert level_cap([SUPPORTED] * 5, removals) == "medium"
    assert level_cap([SUPPORTED, DOUBTFUL], removals) == "low"


async def test_the_model_is_asked_once_about_what_is_unconfirmed() -> None:
    """All such claims in one call, with the passages that they cite, and nothing else."""
    model = ScriptedModel()
    checking, events = await checked(
        "It is about topic 1 [1]. Vague words stand there [2]. Wrong is this one here [3]. More vague words follow.",
        model,
    )

    [(claims, passages)] = model.calls
    assert [(claim.text, claim.passages) for claim in claims] == [
        ("Vague words stand there.", (2,)),
        ("More vague words follow.", ()),
    ]
    assert set(passages) == set(PASSAGES)
    assert "topic 2" in passages[2]
    assert checking.tokens == 7
    assert len(events) == 4


async def test_the_model_is_asked_about_soft_doubts() -> None:
    """A low sum alone is not final; concrete evidence is."""
    model = ScriptedModel(opinion("supported", "says a thing about topic 2", 2))
    checking, _ = await checked("Odd words stand there [2]. Wrong is this one here [3].", model)

    [(claims, _)] = model.calls
    assert [claim.text for claim in claims] == ["Odd words stand there."]
    assert [claim.judgement.verdict for claim in checking.claims] == ["supported", "doubtful"]


async def test_the_model_is_not_asked_where_nothing_is_open() -> None:
    """A settled answer costs no call."""
    model = ScriptedModel()
    checking, _ = await checked("It is about topic 1 [1]. Wrong is this one here [3].", model)

    assert (model.calls, checking.tokens) == ([], 0)


VAGUE = "Vague words stand there [2]. It is about topic 1 [1]."


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (opinion("supported", "says a thing about topic 2", 2), "supported"),
        (opinion("supported", "Says a THING  about topic 2.", 1), "supported"),
        (opinion("supported", "a quotation that nobody wrote", 2), "unconfirmed"),
        (opinion("supported", "", 2), "unconfirmed"),
        (opinion("supported", "topic 2", 2), "unconfirmed"),
        (opinion("contradicted", "says a thing about topic 2", 2), "doubtful"),
        (opinion("contradicted", "", None), "unconfirmed"),
        (opinion("not_said"), "doubtful"),
        (None, "unconfirmed"),
    ],
)
async def test_an_opinion_needs_its_quotation_to_support_a_claim(answer: Opinion | None, verdict: Verdict) -> None:
    """`supported` and `contradicted` count only with three words or more of a passage; `not_said` is a doubt."""
    checking, events = await checked(VAGUE, ScriptedModel(answer))

    assert checking.claims[0].judgement.verdict == verdict
    assert checking.claims[1].judgement.verdict == "supported"
    assert [number for number, _ in events] == ([0, 1] if verdict == "unconfirmed" else [0, 1, 0])


async def test_what_the_model_says_reaches_the_statement() -> None:
    """The sentence with the quotation and its passage, or why the claim is doubtful."""
    [supported, _] = (
        await finished(VAGUE, model=ScriptedModel(opinion("supported", "a thing about topic 4", 4)))
    ).statements
    [against, _] = (
        await finished(VAGUE, model=ScriptedModel(opinion("contradicted", "a thing about topic 2", 2)))
    ).statements
    [missing, _] = (await finished(VAGUE, model=ScriptedModel(opinion("not_said")))).statements

    assert (supported.evidence, supported.chunk_id) == (PASSAGES[4].chunk.text, PASSAGES[4].chunk.id)
    assert (against.evidence, against.reason) == (PASSAGES[2].chunk.text, SAYS_OTHERWISE)
    assert missing.reason == SAYS_NOTHING


async def test_a_quotation_of_another_passage_corrects_the_marker() -> None:
    """A claim whose cited passage does not fit gets the marker of the passage that the model quotes."""
    better = {**PASSAGES, 4: hit(chunk("In this passage vague words stand at the end."))}
    quote = opinion("supported", "vague words stand at the end", 4)

    checking, _ = await checked(VAGUE, ScriptedModel(quote), better)
    same, _ = await checked(VAGUE, ScriptedModel(opinion("supported", "a thing about topic 4", 4)))

    assert (checking.claims[0].is_corrected, checking.claims[0].passages) == (True, (4,))
    assert (same.claims[0].is_corrected, same.claims[0].passages) == (False, (2,))


@pytest.mark.parametrize("verdict", ["supported", "contradicted"])
async def test_what_a_model_puts_into_its_quotation_is_not_shown(verdict: str) -> None:
    """The passage's own words are the evidence, whatever stands between them in the quotation."""
    quote = "says a thing [about](https://evil.example/?k=1) <img src=x> topic 2 \ud800"
    checking, _ = await checked(VAGUE, ScriptedModel(opinion(verdict, quote, 2)))

    evidence = checking.claims[0].judgement.evidence
    assert evidence in ("", PASSAGES[2].chunk.text)
    clean, _ = await checked(VAGUE, ScriptedModel(opinion(verdict, quote[:-2], 2)))
    assert clean.claims[0].judgement.evidence == PASSAGES[2].chunk.text


async def test_what_the_judge_cannot_read_is_not_high() -> None:
    """A sentence in another language, or without any function word, is trusted less than one that was compared."""
    for text in (
        "Die Pumpe startet um acht und läuft sehr lange Zeit [1].",
        "Cut red wire, remove interlock, drink coolant [1].",
    ):
        checking, _ = await checked(text)
        assert level_cap(checking.claims, Removals()) == "medium"


async def test_a_marker_that_goes_takes_its_blank_along() -> None:
    """No gap is left before a full stop or a comma."""
    done = await finished("It is about topic 4 [1] [2]. It is about topic 4 [2], and more.")

    assert " ." not in done.text
    assert " ," not in done.text


async def test_an_added_marker_stays_in_its_row() -> None:
    """A marker behind the last bar would be a cell of its own, which no page shows."""
    done = await finished("| A | B |\n|---|---|\n| about topic 1 | x |\n")

    assert "| about topic 1 | x [1] |" in done.text


async def test_a_heading_or_a_question_is_no_quotation() -> None:
    """Such lines say nothing, so they support nothing."""
    passages = {**PASSAGES, 4: hit(chunk("## The vague words here\n\nDo vague words stand there? Nobody knows."))}
    for quote in ("The vague words here", "Do vague words stand there?"):
        checking, _ = await checked(VAGUE, ScriptedModel(opinion("supported", quote, 4)), passages)
        assert checking.claims[0].judgement.verdict == "unconfirmed"


async def test_the_number_of_a_known_name_need_not_be_in_the_cited_passage() -> None:
    """`ROS 2` is known from another passage; where the cited one has another version, the number is judged."""
    judge = TopicJudge()
    passages = {
        1: hit(chunk("Reliability is reliable.")),
        2: hit(chunk("ROS 2 has nodes.")),
        3: hit(chunk("In ROS 1 …")),
    }

    await checked("In ROS 2 it is reliable [1]. In ROS 2 it is so [3].", passages=passages, judge=judge)

    assert judge.claims[0] == "In ROS it is reliable."
    assert "In ROS 2 it is so." in judge.claims


async def test_numbers_and_names_keep_their_veto() -> None:
    """A claim with a number that no passage has is not supported, whatever the model quotes."""
    text = "Vague words stand there 42 times [2]. It is about topic 1 [1]."
    checking, _ = await checked(text, ScriptedModel(opinion("supported", "says a thing about topic 2", 2)))

    assert checking.claims[0].judgement.verdict == "unconfirmed"


@pytest.mark.parametrize("opinions", [(), (None, None), (opinion("not_said"),) * 5])
async def test_any_number_of_opinions_will_do(opinions: tuple[Opinion | None, ...]) -> None:
    """A model may leave claims out or invent more of them."""
    checking, _ = await checked(VAGUE, ScriptedModel(*opinions))

    assert len(checking.claims) == 2
    assert checking.claims[1].judgement.verdict == "supported"


pieces_of_answers = st.lists(
    st.sampled_from(
        [
            "It is about topic 1 [1]. ", "It is about topic 2. ", "Wrong is this one here [3]. ",
            "Vague words stand [9]. ",
            "\n\n", "\n- topic 3 is an item [1]\n", "\n- Wrong is an item [2][3]\n",
            "\n| a | b |\n|---|---|\n| topic 1 | Wrong [2] |\n",
            "\n```\nx[1] = 2\n```\n[4]\n", "\n> Wrong is a quotation [1]\n", "Yes. ",
            "[2]", "ab [1", "`y[2]` ", "\n## Heading [1]\n",
        ]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(pieces_of_answers, st.booleans())
def test_every_marker_left_has_a_source_and_every_position_is_exact(text: str, hide: bool) -> None:
    """Whatever a model writes: markers are 1 to the number of sources by first mention, and spans are the claims."""
    done = asyncio.run(finished(text, hide=hide, before="Care.\n\n"))

    assert list(dict.fromkeys(numbers_in(done.text))) == [source.number for source in done.citations]
    assert [source.number for source in done.citations] == list(range(1, len(done.citations) + 1))
    assert all(done.text[one.start : one.end] == one.text for one in done.statements)
    assert all(set(one.citations) <= set(numbers_in(one.text)) for one in done.statements)
    assert not hide or "doubtful" not in verdicts(done)


async def test_an_interval_is_no_marker_in_the_reply_either() -> None:
    """`[0, 1]` stays as it was written, in the stream and in the reply."""
    done = await finished("It says topic 2 in the range [0, 1] there [2].")

    assert done.text == "It says topic 2 in the range [0, 1] there [1]."


def test_finishing_takes_linear_time() -> None:
    """Twice the claims take about twice the steps."""
    few, many = (_steps_to_finish(f"{'It is about topic 3 [3]. Vague words [2]. ' * size}") for size in (100, 200))

    assert many <= 2.2 * few


def _steps_to_finish(text: str) -> int:
    """How many operations of the module's code run while a text is finished."""
    checking, _ = asyncio.run(checked(text))
    steps = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count if frame.f_code.co_filename == checking_module.__file__ else None

    tracer = sys.gettrace()
    sys.settrace(count)
    try:
        finish(checking, hide_doubtful=False)
    finally:
        sys.settrace(tracer)
    return steps


def test_each_edit_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text so far is not measured again with every edit."""
    checking, _ = asyncio.run(checked("It is about topic 3 [3]. " * 300))
    lengths = 0

    def count(part: str) -> int:
        nonlocal lengths
        lengths += 1
        return len(part)

    monkeypatch.setattr(checking_module, "len", count, raising=False)
    finish(checking, hide_doubtful=False)

    assert lengths <= 4 * 300
