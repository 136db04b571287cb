"""The only place that writes to the terminal. Books, models and questions may hold escape sequences, which a terminal
would run: they can hide text, rename the window or write to the clipboard. So every text is cleaned before it is
printed, and JSON has such characters as escapes."""

from __future__ import annotations

import json
import re

import typer

REPLACEMENT = "\ufffd"
PICTURES = 0x2400  # Unicode shows the control character n as the sign 0x2400 + n
DELETE, DELETE_PICTURE = 0x7F, "\u2421"
_KEPT = "\n\t"
_CONTROLS = [chr(code) for code in range(0x20) if chr(code) not in _KEPT]
_INVISIBLE = [chr(code) for code in (*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))]
_SHOWN = {
    **{ord(sign): chr(PICTURES + ord(sign)) for sign in _CONTROLS},
    DELETE: DELETE_PICTURE,
    **{ord(sign): REPLACEMENT for sign in _INVISIBLE},
    **dict.fromkeys(range(0xD800, 0xE000), REPLACEMENT),  # half a character, which no terminal can show
}
_ESCAPED_IN_JSON = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """The text with a visible sign in place of every character that a terminal would obey; as long as before."""
    return text.translate(_SHOWN)


def echo(text: str = "", *, err: bool = False, nl: bool = True, bold: bool = False, dim: bool = False) -> None:
    """Print a text, cleaned."""
    shown = clean(text)
    echo_styled(typer.style(shown, bold=bold or None, dim=dim or None) if bold or dim else shown, err=err, nl=nl)


def echo_styled(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text that was cleaned before it was styled."""
    typer.echo(text, err=err, nl=nl)


def echo_json(text: str, *, nl: bool = True) -> None:
    """Print JSON as it is, with escapes for what a terminal would obey."""
    typer.echo(_ESCAPED_IN_JSON.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text), nl=nl)


def print_json(body: object) -> None:
    """Print a value as one line of JSON."""
    echo_json(json.dumps(body, ensure_ascii=False))


def confirm(question: str) -> bool:
    """Ask a yes-or-no question; no if nobody can answer."""
    try:
        return typer.confirm(clean(question), err=True)
    except typer.Abort:  # no terminal, or Ctrl-C
        return False
