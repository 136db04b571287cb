"""Questions to a German and a Japanese book, without a model and without a manifest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.confidence.signals import signals_of
from lectern.domain.replies import Answer, Refusal
from lectern.text.language import function_words_of, stem_in
from lectern.text.strings import strings_of
from lectern.text.words import wording_of
from tests.making import chunk, hit

BOOKS = Path(__file__).parents[1] / "languages"
ELSEWHERE = {
    "german": (
        "Wie wechselt man einen Fahrradreifen?",
        "Wann wurde Berlin gegründet?",
        "Wie backe ich Sauerteigbrot?",
        "Wie züchtet man Seidenraupen?",
        "Wie melkt man eine Kuh?",
    ),
    "japanese": (
        "自転車のタイヤを交換する方法は",
        "東京はいつ首都になりましたか",
        "富士山の高さは何メートルですか",
        "コーヒー豆の挽き方は",
        "ワインはどのように保存しますか",
    ),
}


@pytest.mark.parametrize(("name", "language", "answers"), [("german", "de", 12), ("japanese", "ja", 18)])
async def test_covered_questions_are_answered_and_never_with_high_confidence(
    tmp_path: Path, name: str, language: str, answers: int
) -> None:
    """Of 24 questions each; with English words alone it was 8 and none. What the book does not have is refused, in its
    language."""
    questions = [json.loads(line)["text"] for line in (BOOKS / f"{name}.jsonl").read_text("utf-8").splitlines()]
    async with open_lectern(Settings(home=tmp_path)) as lectern:
        await lectern.ingest(BOOKS / name)
        replies = [await lectern.ask(question) for question in questions]
        refusals = [await lectern.ask(question) for question in ELSEWHERE[name]]

    assert sum(isinstance(reply, Answer) for reply in replies) >= answers
    assert {reply.account.metrics.confidence_level for reply in replies} == {"medium", "low", "insufficient"}
    assert all(isinstance(refusal, Refusal) for refusal in refusals)
    assert {refusal.text for refusal in refusals} == {strings_of(language)("refusal.default")}


def test_the_wording_is_compared_in_the_books_language() -> None:
    """A German plural is its singular, and German function words are no wording."""
    passage = [hit(chunk("Auf dem Etikett steht das Gewicht."))]

    assert signals_of("Was steht auf Etiketten?", passage, language="de-AT").covered == 1
    assert signals_of("Was steht auf Etiketten?", passage).covered < 1


def test_words_are_cut_and_stemmed_by_their_language() -> None:
    """A run without gaps becomes n-grams; an English text is cut as always, whatever the language."""
    assert wording_of("cmd_vel を回します") == ["cmd", "vel", "を回", "回し", "しま", "ます"]
    assert wording_of("茶 tea") == ["茶", "tea"]
    assert stem_in("nb", "bøkene") == stem_in("no", "bøkene") != "bøkene"
    assert stem_in("xx", "nodes") == stem_in("en-GB", "nodes") == "node"
    assert "und" in function_words_of("de-AT")
    assert function_words_of("en") == frozenset()
