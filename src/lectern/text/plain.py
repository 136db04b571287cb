r"""Plain text without Markdown, HTML and LaTeX markup. A sentence and the passage that it is checked against are both
converted here, so that `**33 ms**`, `$33\,\text{ms}$` and `33 ms` become equal. Every pattern takes linear time, so a
hostile text cannot make it slow."""

from __future__ import annotations

import re
import unicodedata

_FENCE = r"`{3,}|~{3,}"
OPENING_FENCE = re.compile(rf"({_FENCE})")  # of a listing, at the beginning of a text
_FENCE_LINE = re.compile(rf"(?m)^\s*(?:{_FENCE}).*$")
_SIGNS = str.maketrans(
    {
        "‘": "'", "’": "'", "‛": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "\xa0": " ", "\u2009": " ",
        "\u202f": " ", "\u2011": "-", "\u2212": "-", "\u2010": "-", "\xad": None, "\u200b": None, "\ufeff": None,
    }
)  # fmt: skip
_COMMANDS = {
    "approx": "≈", "times": "×", "cdot": "·", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "pm": "±", "circ": "°",
    "degree": "°", "percent": "%", "to": "→", "rightarrow": "→", "ll": "<", "gg": ">", "lt": "<", "gt": ">", "ne": "≠",
    "neq": "≠", "infty": "∞", "sim": "≈", "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε",
    "theta": "θ", "lambda": "λ", "mu": "µ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "omega": "ω",
    "Delta": "Δ", "Omega": "Ω", "Sigma": "Σ",
}  # fmt: skip
_FRACTION = re.compile(r"\\[td]?frac\{([^{}]{0,80})\}\{([^{}]{0,80})\}")
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|mathit|operatorname|texttt|textbf|boxed)\{([^{}]{0,200})\}")
_THIN = re.compile(r"\\[,;:! ]|\{,\}")
_COMMAND = re.compile(r"\\([A-Za-z]{1,20})")
_ESCAPED = re.compile(r"\\([_#.+<>&~-])")  # `max\_pool\_size`
_INLINE_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,500}\)")
_CODE = r"(?P<code>`[^`\n]+`)"  # its signs are content
_CODE_SPAN = re.compile(r"(`[^`\n]+`)")
_ADDRESS = re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,500}|[\w.+-]{1,80}@[\w.-]{1,200})>")
_SHORT_TAG = re.compile(rf"{_CODE}|</?[A-Za-z][^<>\n]{{0,300}}>")
_EMPHASIS = re.compile(rf"{_CODE}|\*{{1,3}}(?=\S)|(?<=\S)\*{{1,3}}|(?<!\w)_{{1,3}}(?=\S)|(?<=\S)_{{1,3}}(?!\w)")
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)?(?:#{1,6}\s+)?")
_CONTRACTION = re.compile(r"(?i)\b(ca|wo|sha|[a-z]{2,7})n't\b|\bcannot\b")
_WHOLE = {"ca": "can", "wo": "will", "sha": "shall"}
_ATTRIBUTION = re.compile(
    r"(?i)^(?:according to|as (?:explained|described|stated|shown|noted) in|in) (?:the|this) "
    r"(?:book|chapter|lesson|section|text|passage|author|module|course)(?: says| states| explains)?,\s*"
)
_BLANKS = re.compile(r"\s+")
_NOT_WORDS = re.compile(r"(?:[^\w%°/.+<>=≤≥≠-]|(?<!\w)[.-](?!\w)|(?<=\w)[.-](?!\w))+")


def plain(text: str) -> str:
    """The text on one line without markup. Backticks stay, because they mark names."""
    text = unicodedata.normalize("NFC", text).translate(_SIGNS)
    if "\\" in text or "$" in text:  # in code they are content
        formulas = text.count("$") > 1
        pieces = _CODE_SPAN.split(text)
        text = "".join(piece if at % 2 else _untexed(piece, formulas=formulas) for at, piece in enumerate(pieces))
    if "[" in text:
        text = without_targets(text)
    if "<" in text:
        text = _SHORT_TAG.sub(lambda match: match["code"] or " ", _ADDRESS.sub(r"\1", text))
    if "*" in text or "_" in text:
        text = _EMPHASIS.sub(lambda match: match["code"] or "", text)
    if "'" in text or "annot" in text:
        text = _CONTRACTION.sub(_spelt, text)
    return _BLANKS.sub(" ", text).strip()


def without_targets(text: str) -> str:
    """The text with the words of each link in its place."""
    return _INLINE_LINK.sub(r"\1", text)


def _spelt(match: re.Match[str]) -> str:
    """Write `can't` and `cannot` as `can not`."""
    stem = match[1]
    return f"{_WHOLE.get(stem.lower(), stem)} not" if stem else f"{match[0][:3]} not"


def unattributed(sentence: str) -> str:
    """The sentence without an opening such as `According to the lesson,`."""
    return _ATTRIBUTION.sub("", sentence)


def unmarked(line: str) -> str:
    """A line without the signs at its beginning: bullets, list numbers, quote marks, heading marks."""
    lead = _LEAD.match(line)
    return line[lead.end() :] if lead else line


def unfenced(text: str) -> str | None:
    """A text without the lines that open and close its listings; None if it has none."""
    return _FENCE_LINE.sub("", text) if _FENCE_LINE.search(text) else None


def squeezed(text: str) -> str:
    """The text in lower case with spaces for punctuation, to test whether one text contains another."""
    return f" {_NOT_WORDS.sub(' ', plain(text).replace('`', ' ').casefold()).strip()} "


def _untexed(text: str, *, formulas: bool) -> str:
    text = text.replace("$", " ") if formulas else text
    if "\\" not in text:
        return text
    text = _ESCAPED.sub(r"\1", _THIN.sub(_thin, text))
    for _ in range(3):  # commands are nested, but hardly deeper
        text = _WRAPPED.sub(r"\1", text)
        text = _FRACTION.sub(r"\1/\2", text)
    text = _COMMAND.sub(lambda match: _COMMANDS.get(match.group(1), " "), text)
    return text.replace("{", "").replace("}", "").replace("\\", " ")


def _thin(match: re.Match[str]) -> str:
    r"""Remove a thin space inside a number (`921\,600`); elsewhere it becomes a space."""
    text, start, end = match.string, match.start(), match.end()
    return "" if text[max(start - 1, 0) : start].isdigit() and text[end : end + 1].isdigit() else " "
