"""Formulas as MathML, which browsers show without a script. A formula that cannot be converted is shown as written.

The library writes the name of a function like a product of letters, or like an operator. Here it becomes one upright
identifier with a thin space to what it stands beside, as in print: `2 cos q`, but `cos(q)`."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape, unescape
from xml.etree.ElementTree import Element, tostring

MAX_FORMULA = 2_000  # characters
THIN_SPACE = "0.167em"
_OPERATOR_NAME = re.compile(r"\\operatorname\*?\s*\{((?:[A-Za-z0-9 -]|\\[,;: !])+)\}")
_SPACE_COMMAND = re.compile(r"\\[,;: !]")
_NAME_MARK = "\ue000"  # in a text of the formula that is a name; a private character
_FUNCTION = re.compile(r"[A-Za-z][A-Za-z0-9 -]+")
_SCRIPTED = frozenset({"msub", "msup", "msubsup", "munder", "mover", "munderover"})


@lru_cache(maxsize=500)
def formula_html(latex: str, *, block: bool) -> str:
    """A LaTeX formula as MathML."""
    source = latex.strip()
    if source and len(source) <= MAX_FORMULA:
        from latex2mathml.converter import convert_to_element  # takes 50 ms, and few books have formulas

        try:
            formula = convert_to_element(_with_names(source), display="block" if block else "inline")
        except Exception:  # noqa: BLE001, S110  # the library raises its own errors, IndexError and others on bad LaTeX
            pass
        else:
            _set_names(formula)
            _set_spaces(formula)
            return tostring(formula, encoding="unicode")
    code = f'<code class="math">{escape(source)}</code>'
    return f"<p>{code}</p>\n" if block else code


def _with_names(latex: str) -> str:
    """The formula with the name of each operator as a marked text, which the library leaves as it is."""
    plain = latex.replace(_NAME_MARK, "")
    return _OPERATOR_NAME.sub(lambda match: rf"\text{{{_NAME_MARK}{_SPACE_COMMAND.sub(' ', match[1])}}}", plain)


def _set_names(formula: Element) -> None:
    """Make the names of functions identifiers, and the library's references to characters the characters."""
    for part in formula.iter():
        part.text = unescape(part.text) if part.text else part.text
        text = part.text or ""
        if part.tag == "mtext" and text.startswith(_NAME_MARK):
            part.tag, part.text = "mi", text[1:].replace("\u00a0", " ")
            part.attrib = {"mathvariant": "normal"}  # one letter would be in italics
        elif part.tag == "mo" and _FUNCTION.fullmatch(text):
            part.tag = "mi"


def _set_spaces(formula: Element) -> None:
    """Put a thin space between a function and the operands beside it."""
    for row in list(formula.iter()):
        if row.tag in _SCRIPTED or row.tag in ("mfrac", "mroot"):  # these count their children
            continue
        children = list(row)
        for place in range(len(children) - 1, 0, -1):
            before, after = children[place - 1], children[place]
            beside = _is_function(before) or _is_function(after)
            if beside and not {before.tag, after.tag} & {"mo", "mspace", "mtr", "mtd"}:
                row.insert(place, Element("mspace", {"width": THIN_SPACE}))


def _is_function(part: Element) -> bool:
    """Whether an element is the name of a function, also with an index or a power."""
    if part.tag in _SCRIPTED:
        return len(part) > 0 and _is_function(part[0])
    if part.tag != "mi":
        return False
    return part.get("mathvariant") == "normal" or bool(_FUNCTION.fullmatch(part.text or ""))
