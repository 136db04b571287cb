"""A text's language is told by its little words, not by what somebody declared."""

from __future__ import annotations

import pytest

from lectern.answering.languages import english
from tests.conftest import SAMPLE_BOOK

OTHERS = {
    "German": (
        "Ein Knoten ist ein Teilnehmer im Graphen, der einen eigenen Namen hat. Wenn die Batterie leer ist, "
        "fährt der Roboter zurück in die Station, und das dauert so lange, bis man ihn wieder startet. "
    ),
    "French": (
        "Un nœud est un participant du graphe qui a son propre nom. Quand la batterie est vide, le robot "
        "retourne à la station, et on doit le redémarrer avec une commande. "
    ),
    "Spanish": (
        "Un nodo es un participante del grafo que tiene su propio nombre. Cuando la batería está vacía, el "
        "robot vuelve a la estación y hay que reiniciarlo con una orden. "
    ),
    "Portuguese": (
        "Um nó é um participante do grafo que tem um nome próprio. Quando a bateria está vazia, o robô volta "
        "para a estação e não se move mais, por isso é preciso reiniciar com uma ordem. "
    ),
    "Italian": (
        "Un nodo è un partecipante del grafo che ha un proprio nome. Quando la batteria è scarica, il robot "
        "torna alla stazione e non si muove più, per questo si deve riavviare. "
    ),
    "Dutch": (
        "Een knoop is een deelnemer in de graaf die een eigen naam heeft. Als de batterij leeg is, gaat de "
        "robot terug naar het station, en dat duurt tot hij weer wordt gestart. "
    ),
    "Swedish": (
        "En nod är en deltagare i grafen som har ett eget namn. När batteriet är tomt åker roboten till "
        "stationen och väntar där, men det tar inte lång tid för att starta den. "
    ),
    "Polish": (
        "Węzeł jest uczestnikiem grafu, który ma własną nazwę. Gdy bateria jest pusta, robot wraca do stacji "
        "i nie rusza się, dlatego trzeba go uruchomić ponownie przez polecenie, które jest w tym rozdziale. "
    ),
    "Turkish": (
        "Düğüm, grafikte kendi adı olan bir katılımcıdır. Bu robot çok hızlı değil, ama pil bittiği için "
        "istasyona döner ve daha sonra bir komut ile başlar. "
    ),
}


@pytest.mark.parametrize("language", OTHERS)
def test_other_languages_are_seen(language: str) -> None:
    """However the book is declared; a listing in English changes nothing."""
    listing = "```python\n# wait until the robot is at the station and then go on\nprint('done')\n```\n"

    assert not english([OTHERS[language]])
    assert not english([f"{listing}\n{OTHERS[language]}"])


def test_english_is_english() -> None:
    """Every lesson of the sample book; words that both languages have, names and code tell nothing."""
    lessons = [file.read_text(encoding="utf-8") for file in SAMPLE_BOOK.rglob("*.md*")]

    assert all(english([lesson]) for lesson in lessons)
    assert english(["```python\nde = le = la = que = der = die = das = und = 1\n```"])
    assert english(["The tour goes from Los Angeles via Las Vegas and La Paz to Rio de Janeiro, de facto in a day."])
    assert english(["| a | b |\n|---|---|\n| 1 | 2 |"])
    assert english([])
