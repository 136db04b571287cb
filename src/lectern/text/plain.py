r"""Text as a reader sees it: Markdown, HTML and LaTeX signs go, what they enclose stays. A sentence and the passage it
is checked against pass through here alike, so that `**33 ms**`, `$33\,\text{ms}$` and `33 ms` are one thing. Every
pattern is linear: no text, however hostile, makes it slow."""

from __future__ import annotations

import re
import unicodedata

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
_LINK = re.compile(r"!?\[([^\[\]\n]{0,300})\]\([^()\s]{0,500}\)")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,300}>")
_STARS = re.compile(r"\*{1,3}(?=\S)|(?<=\S)\*{1,3}")
_LINES = re.compile(r"(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_LEAD = re.compile(r"^\s*(?:>\s*)*(?:[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)?(?:#{1,6}\s+)?")
_SHORT = re.compile(r"(?i)\b(ca|wo|sha|[a-z]{2,7})n't\b|\bcannot\b")
_WHOLE = {"ca": "can", "wo": "will", "sha": "shall"}
_ATTRIBUTION = re.compile(
    r"(?i)^(?:according to|as (?:explained|described|stated|shown|noted) in|in) (?:the|this) "
    r"(?:book|chapter|lesson|section|text|passage|author|module|course)(?: says| states| explains)?,\s*"
)
_BLANKS = re.compile(r"\s+")
_NOT_WORDS = re.compile(r"(?:[^\w%°/.+<>=≤≥≠-]|(?<!\w)[.-](?!\w)|(?<=\w)[.-](?!\w))+")


def plain(text: str) -> str:
    """One line of text without markup; code ticks stay, because they say what is a name."""
    text = unicodedata.normalize("NFC", text).translate(_SIGNS)
    if "\\" in text:
        text = _untexed(text)
    text = text.replace("$", " ") if text.count("$") > 1 else text
    if "[" in text:
        text = _LINK.sub(r"\1", text)
    if "<" in text:  # in code a tag is the very thing that is talked about
        pieces = text.split("`")
        text = "`".join(piece if place % 2 else _TAG.sub(" ", piece) for place, piece in enumerate(pieces))
    if "*" in text:
        text = _STARS.sub("", text)
    if "_" in text:
        text = _LINES.sub("", text)
    if "'" in text or "annot" in text:
        text = _SHORT.sub(_spelt, text)
    return _BLANKS.sub(" ", text).strip()


def _spelt(found: re.Match[str]) -> str:
    """`can't`, `cannot` and `can not` are one."""
    stem = found[1]
    return f"{_WHOLE.get(stem.lower(), stem)} not" if stem else f"{found[0][:3]} not"


def unattributed(sentence: str) -> str:
    """The sentence without `According to the lesson,`: who says it is known."""
    return _ATTRIBUTION.sub("", sentence)


def unmarked(line: str) -> str:
    """A line without the signs at its head: bullets, numbers of a list, quote marks, heading marks."""
    lead = _LEAD.match(line)
    return line[lead.end() :] if lead else line


def squeezed(text: str) -> str:
    """What is compared to tell whether a text stands in another: small letters and digits, signs between them gone."""
    return f" {_NOT_WORDS.sub(' ', plain(text).replace('`', ' ').casefold()).strip()} "


def _untexed(text: str) -> str:
    text = _THIN.sub(_thin, text)
    for _ in range(3):  # wrapped in one another, but hardly deeper
        text = _WRAPPED.sub(r"\1", text)
        text = _FRACTION.sub(r"\1/\2", text)
    text = _COMMAND.sub(lambda found: _COMMANDS.get(found.group(1), " "), text)
    return text.replace("{", "").replace("}", "").replace("\\", " ")


def _thin(found: re.Match[str]) -> str:
    r"""`921\,600` is one number; elsewhere a thin space is a space."""
    text, start, end = found.string, found.start(), found.end()
    return "" if text[max(start - 1, 0) : start].isdigit() and text[end : end + 1].isdigit() else " "
