"""A text's language is told by its little words, not by what somebody declared."""

from __future__ import annotations

import pytest

from lectern.text.language import is_english
from tests.conftest import SAMPLE_BOOK

OTHER_LANGUAGES = {
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
    "Danish": (
        "En knude er en deltager i grafen, som har sit eget navn. Når batteriet er tomt, kører robotten til "
        "stationen og venter, men det er ikke noget problem for den. "
    ),
    "Norwegian": (
        "En node er en deltaker i grafen som har sitt eget navn. Når batteriet er tomt, kjører roboten til "
        "stasjonen og venter der, men det er ikke et problem for den. "
    ),
    "Czech": (
        "Uzel je účastník grafu, který má vlastní jméno. Když je baterie prázdná, robot se vrací do stanice a "
        "čeká, ale to není problém, protože se může nabít a také jede pro další. "
    ),
    "Romanian": (
        "Un nod este un participant la graf care are un nume propriu. Când bateria este goală, robotul se "
        "întoarce la stație și nu se mai mișcă, pentru că trebuie pornit din nou cu o comandă. "
    ),
    "Hungarian": (
        "A csomópont a gráf egy résztvevője, amely saját névvel rendelkezik. Ha az akkumulátor lemerül, a "
        "robot visszatér, és nem mozog, mert meg kell várni, hogy egy parancs elindítsa, de ez nem baj. "
    ),
    "Russian": (
        "Узел — это участник графа, у которого есть своё имя. Когда батарея разряжена, робот возвращается на "
        "станцию и ждёт команды. "
    ),
    "Urdu": ("نوڈ گراف کا ایک شریک ہے جس کا اپنا نام ہوتا ہے۔ جب بیٹری خالی ہو جائے تو روبوٹ اسٹیشن پر واپس آتا ہے۔ "),
}


@pytest.mark.parametrize("language", OTHER_LANGUAGES)
def test_other_languages_are_seen(language: str) -> None:
    """However the book is declared; a listing in English changes nothing."""
    listing = "```python\n# wait until the robot is at the station and then go on\nprint('done')\n```\n"

    assert not is_english([OTHER_LANGUAGES[language]])
    assert not is_english([f"{listing}\n{OTHER_LANGUAGES[language]}"])


def test_english_is_english() -> None:
    """Every lesson of the sample book; words that both languages have, names and code tell nothing."""
    lessons = [file.read_text(encoding="utf-8") for file in SAMPLE_BOOK.rglob("*.md*")]

    assert all(is_english([lesson]) for lesson in lessons)
    assert is_english(["```python\nde = le = la = que = der = die = das = und = 1\n```"])
    assert is_english(["The tour goes from Los Angeles via Las Vegas and La Paz to Rio de Janeiro, de facto in a day."])
    assert is_english(["| a | b |\n|---|---|\n| 1 | 2 |"])
    assert is_english([])
