"""Misspelt questions are read as the book spells them, also if nothing that was found has the word."""

from __future__ import annotations

from pathlib import Path

from lectern.app.open import open_lectern
from lectern.app.settings import Settings
from lectern.domain.replies import Answer
from lectern.domain.scope import Scope

LETTERS = "abcdefghijklmnopqrst"


async def test_the_whole_book_is_asked_for_a_misspelt_word(tmp_path: Path) -> None:
    """Sixty lessons are nearer to the question than the one that has the word, and a filter hides what it hides."""
    folder = tmp_path / "book"
    (folder / "rules").mkdir(parents=True)
    (folder / "other").mkdir()
    for number in range(60):
        name = LETTERS[number // 20] + LETTERS[number % 20]
        text = f"# Rule {name}\n\nYou should change the setting {name} of the account when the rule {name} is on.\n"
        (folder / "rules" / f"rule-{name}.md").write_text(text, encoding="utf-8")
    (folder / "other" / "keys.md").write_text(
        "# Keys\n\nA passphrase has at least fourteen letters and is never written down.\n", encoding="utf-8"
    )
    question = "when should i change the setting of the account pasphrase"
    async with open_lectern(Settings(home=tmp_path / "home")) as lectern:
        await lectern.ingest(folder, book="rules")
        reply = await lectern.ask(question, book="rules")
        within = await lectern.ask(question, scope=Scope(book_id="rules", module="rules"))
        letters = await lectern.ask("how many leters must a pasphrase have", book="rules")

    assert reply.account.standalone == question.replace("pasphrase", "passphrase")
    assert within.account.standalone == question
    assert isinstance(letters, Answer)
    assert "at least fourteen letters" in letters.text
