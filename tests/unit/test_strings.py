"""The sentences that readers see, in every language."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lectern.answering.checking import SAYS_NOTHING, SAYS_OTHERWISE
from lectern.app.settings import Settings
from lectern.grounding.judge import NOT_SAID, REASONS
from lectern.grounding.listings import OTHER_LINE
from lectern.text.language import LANGUAGE_NAMES, noticed_language
from lectern.text.strings import REPLIES_FOLDER, STRINGS_FOLDER, languages, reply_languages, strings_of
from tests.conftest import ROOT, SAMPLE_BOOK
from tests.unit.test_languages import OTHER_LANGUAGES

CODES = {name: code for code, name in LANGUAGE_NAMES.items() if name in OTHER_LANGUAGES} | {
    "Danish": None,  # so short a text may as well be Norwegian
    "Norwegian": None,
}


def entries(language: str, folder: Path = STRINGS_FOLDER) -> dict[str, str]:
    """A file as it is; a key that is there twice is an error."""
    pairs = json.loads((folder / f"{language}.json").read_text(encoding="utf-8"), object_pairs_hook=list)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@pytest.mark.parametrize("language", languages())
def test_every_language_has_the_same_sentences(language: str) -> None:
    """No key is missing, none is left over, and each sentence has the names of the English one."""
    english, other = entries("en"), entries(language)

    assert other.keys() == english.keys()
    assert_complete(other, english)


def assert_complete(sentences: dict[str, str], english: dict[str, str]) -> None:
    """No sentence is empty, and each has the names of the English one."""
    for key, sentence in sentences.items():
        assert sentence.strip(), key
        assert set(re.findall(r"\{(\w+)\}", sentence)) == set(re.findall(r"\{(\w+)\}", english[key])), key


@pytest.mark.parametrize("language", reply_languages())
def test_a_language_may_have_the_replies_alone(language: str) -> None:
    """What the server writes to a reader is in the book's language; the page stays English."""
    replies, strings = entries(language, REPLIES_FOLDER), strings_of(language)

    assert replies.keys() == entries("fr", REPLIES_FOLDER).keys()
    assert {"refusal.default", "answer.disclaimer", "answer.disclaimer_claims"} <= replies.keys()
    assert_complete(replies, entries("en"))
    assert strings.language == language
    assert strings("refusal.default") == replies["refusal.default"] != strings_of("en")("refusal.default")
    assert strings.translated(NOT_SAID) == replies["doubtful.not_said"]
    assert strings("page.skip") == strings_of("en")("page.skip")


def test_a_language_is_chosen_by_its_first_part() -> None:
    """`de-AT` is German; a language without a file is written in English."""
    assert languages() == ("de", "en")
    assert reply_languages() == ("es", "fr", "it", "ja", "nl", "pl", "pt", "zh")
    assert strings_of("de-AT").language == strings_of("DE").language == "de"
    assert strings_of("zh-Hant-TW").language == "zh"
    assert strings_of("en-GB").language == strings_of("xx").language == strings_of("").language == "en"


def test_the_english_sentences_are_the_default_settings() -> None:
    """The one fixed sentence of a refusal, as the settings show it."""
    assert Settings.model_fields["refusal"].default == "I couldn't find that information in the book."
    assert strings_of("en")("refusal.default") == Settings.model_fields["refusal"].default
    assert strings_of("de")("refusal.default") != strings_of("en")("refusal.default")


def test_counts_have_a_singular() -> None:
    """One module is not `1 modules`."""
    assert strings_of("en")("outline.count.module", count=1) == "The book has 1 module."
    assert strings_of("de")("outline.count.module", count=3) == "Das Buch hat 3 Module."


def test_every_reason_of_a_doubtful_claim_is_translated() -> None:
    """A sentence that is in no file would reach a German reader in English."""
    german = strings_of("de")

    for reason in (*REASONS.values(), NOT_SAID, SAYS_OTHERWISE, SAYS_NOTHING, OTHER_LINE):
        assert german.translated(reason) != reason
        assert strings_of("en").translated(reason) == reason
    assert german.translated("") == ""


@pytest.mark.parametrize("name", CODES)
def test_the_language_of_a_text_is_noticed(name: str) -> None:
    """By its script and its function words; English text and code are English."""
    assert noticed_language([OTHER_LANGUAGES[name]]) == CODES[name]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("机器人的电池用完以后会回到充电站。使用 `ros2 run` 命令可以启动 ROS 2 节点。", "zh"),
        ("ロボットの電池が空になると、充電ステーションに戻ります。", "ja"),
        ("배터리가 비면 로봇은 충전소로 돌아갑니다.", "ko"),
        ("หุ่นยนต์กลับไปที่สถานีเมื่อแบตเตอรี่หมด", "th"),
        ("Всё это можно найти в книге, если она есть.", "ru"),
        ("Усе це можна знайти в книзі, якщо вона є, або ні.", "uk"),
    ],
)
def test_the_script_of_a_text_tells_its_language(text: str, code: str) -> None:
    """Also of one without gaps between words and with English terms in it."""
    assert noticed_language([text]) == code


def test_english_text_is_noticed() -> None:
    """A whole book, and a text that says nothing."""
    assert noticed_language([file.read_text(encoding="utf-8") for file in SAMPLE_BOOK.rglob("*.md*")]) == "en"
    assert noticed_language([]) == "en"


def test_the_files_are_in_the_wheel(tmp_path: Path) -> None:
    """An installed Lectern has the sentences too."""
    code = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    built = subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True)
    names = zipfile.ZipFile(tmp_path / built.stdout.split()[-1]).namelist()

    assert {f"lectern/strings/{language}.json" for language in languages()} <= set(names)
    assert {f"lectern/strings/replies/{language}.json" for language in reply_languages()} <= set(names)
    assert "lectern/answering/heading_words.txt" in names
