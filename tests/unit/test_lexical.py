"""The terms of texts: words by the language's stemmer, and n-grams of scripts without gaps."""

from __future__ import annotations

import pytest

from lectern.index.lexical import passage_terms, query_terms, shared_words


def shared(text: str, query: str, language: str) -> list[str]:
    """The shared words themselves."""
    return [text[start:end] for start, end in shared_words(text, query, language)]


def common_terms(text: str, query: str, language: str) -> int:
    """How many terms a passage and a question have in common."""
    return len({*passage_terms((), text, language).indices} & {*query_terms(query, language).indices})


def test_inflected_words_are_the_same_in_their_language() -> None:
    """A German plural finds its singular by the German stemmer, not by the English one."""
    assert common_terms("Das Etikett nennt die Herkunft.", "Etiketten", "de") == 1
    assert common_terms("Das Etikett nennt die Herkunft.", "Etiketten", "en") == 0


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("急須の茶渋は重曹で落とします。", "茶渋"),
        ("机器人的电池没有电了。", "电池"),
        ("로봇은 배터리를 충전한다", "배터리가"),
        ("หุ่นยนต์กลับไปที่สถานี", "สถานี"),
    ],
)
def test_a_word_without_gaps_around_it_is_found(text: str, query: str) -> None:
    """In the book's language, and in a book of another one that quotes it."""
    for language in ("ja", "en"):
        assert common_terms(text, query, language)
        assert shared(text, query, language)


def test_english_terms_and_code_in_a_japanese_text_are_words() -> None:
    """They are split and stemmed as in an English book."""
    text = "ノードは cmd_vel に messages を送ります。"

    assert shared(text, "vel message", "ja") == ["cmd_vel", "messages"]
    assert shared(text, "メッセージを送りますか", "ja") == ["を送ります"]


def test_other_texts_have_the_terms_of_the_engine_alone() -> None:
    """A text without such a script is not touched."""
    assert common_terms("Nodes publish topics.", "topic nodes", "en") == 2
    assert len(query_terms("茶", "ja").indices) == 1
    assert query_terms("?!", "ja").indices == []
