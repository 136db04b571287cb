"""The last step of rendering: only the listed elements, attributes and classes of a rendered text reach a browser.

Raw HTML of a book or a model is never rendered, so this should find nothing to remove. It is there for the day on
which the renderer, or a library under it, has a fault."""

from __future__ import annotations

import re

import nh3

_TEXT_TAGS = frozenset(
    "a abbr aside b blockquote br code dd del details div dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img kbd li "
    "mark ol p pre s section span strong sub summary sup table tbody td th thead tr ul".split()
)
_MATH_TAGS = frozenset(
    "math menclose mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt "
    "mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none".split()
)
_ATTRIBUTES = {
    "*": {"class", "data-lines"},
    "a": {"href", "data-source", "data-lesson", "data-anchor", "target", "title"},
    "details": {"open"},
    "div": {"tabindex"},
    "figure": {"data-language", "data-claim"},
    "h1": {"id"},
    "h2": {"id"},
    "h3": {"id"},
    "h4": {"id"},
    "h5": {"id"},
    "h6": {"id"},
    "img": {"alt", "title", "data-file", "width", "height"},
    "li": {"id", "value"},
    "ol": {"start"},
    "section": {"data-label"},
    "span": {"data-claim"},
    "sup": {"id"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "math": {"display"},
    "mi": {"mathvariant"},
    "mo": {"stretchy", "fence", "separator", "lspace", "rspace", "minsize", "maxsize", "accent", "form"},
    "mover": {"accent"},
    "munder": {"accentunder"},
    "mfrac": {"linethickness"},
    "mspace": {"width"},
    "mtable": {"columnalign", "rowspacing", "columnspacing", "columnlines", "rowlines", "displaystyle"},
    "mtd": {"columnalign"},
    "mstyle": {"displaystyle", "scriptlevel", "mathvariant"},
    "mtext": {"mathvariant"},
    "menclose": {"notation"},
    "mpadded": {"width", "height", "depth", "lspace", "voffset"},
}
_SCHEMES = {"http", "https", "mailto"}
_CLASS = re.compile(r"[a-z][\w -]{0,99}", re.IGNORECASE)
_LOCAL_ID = re.compile(r"[^\s<>\"'&]{1,500}")


def sanitised(html: str) -> str:
    """The HTML without anything that is not listed above."""
    return nh3.clean(
        html,
        tags=set(_TEXT_TAGS | _MATH_TAGS),
        attributes=_ATTRIBUTES,
        attribute_filter=_attribute,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )


def _attribute(tag: str, name: str, value: str) -> str | None:
    """The value of an attribute; None removes it."""
    if name == "class":
        return value if _CLASS.fullmatch(value) else None
    if name == "id":
        return value if _LOCAL_ID.fullmatch(value) else None
    if name == "target":
        return value if (tag, value) == ("a", "_blank") else None
    return value
