"""Reads `lectern.toml`, the author's settings for the whole book. Every key is checked: a misspelt `exclude` that is
silently ignored would index files that the author left out. Without the file everything is inferred."""

from __future__ import annotations

import difflib
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from lectern.domain.books import LAYERS, LEVELS, SITES, TIERS, Defaults, ModuleInfo, Site
from lectern.domain.errors import BadManifest
from lectern.reading.files import read_bytes
from lectern.reading.names import MAX_DESCRIPTION, one_line, slugged
from lectern.reading.problems import Unreadable

MANIFEST = "lectern.toml"
MAX_MANIFEST_BYTES = 1024 * 1024
MAX_LANGUAGE_CHARACTERS = 35  # the length that BCP 47 asks software to allow
_GENERIC_FOLDERS = frozenset({"docs", "src", "source", "content", "book", "modules", "site"})
_KEYS = {
    "": (
        "book_id",
        "title",
        "description",
        "base_url",
        "site",
        "exclude",
        "language",
        "modules",
        "module_aliases",
        "defaults",
        "reader",
        "limits",
    ),
    "modules": ("slug", "folder", "title"),
    "defaults": ("hardware_tier", "proficiency_level", "layer"),
    "reader": ("hardware_tier",),
    "limits": ("max_chapter", "max_lesson"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The values of the manifest; None or empty for those that it does not set, so that they can be inferred."""

    book_id: str | None = None
    title: str | None = None
    description: str | None = None
    base_url: str | None = None
    site: Site | None = None
    exclude: tuple[str, ...] = ()
    language: str | None = None
    modules: tuple[ModuleInfo, ...] = ()
    module_aliases: tuple[tuple[str, str], ...] = ()
    defaults: Defaults = field(default_factory=Defaults)
    reader_tier: int | None = None
    max_chapter: int | None = None
    max_lesson: int | None = None


def infer_book_id(folder: Path) -> str:
    """A book id from the nearest folder whose name is not a generic one such as `docs`."""
    real = folder.resolve()
    for name in (real.name, *(parent.name for parent in real.parents)):
        if name and name.lower() not in _GENERIC_FOLDERS:
            return slugged(name)
    return slugged(real.name or "book")


def read_manifest(folder: Path) -> Declared:
    """The manifest in the book's folder, or an empty one. Raises BadManifest with the key and what it should be."""
    if not (folder / MANIFEST).is_file():
        return Declared()
    try:
        raw = read_bytes(folder, MANIFEST, MAX_MANIFEST_BYTES)
        data = tomllib.loads(raw.decode("utf-8-sig"))
    except Unreadable as exc:
        raise BadManifest(f"{MANIFEST}: {exc.message}") from exc
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as exc:
        raise BadManifest(f"{MANIFEST} is not valid TOML: {exc}") from exc
    return _declared(data)


def _declared(data: dict[str, Any]) -> Declared:
    _check_keys(data, "")
    defaults, reader, limits = (_table(data, name) for name in ("defaults", "reader", "limits"))
    site = _choice(data, "site", SITES)
    return Declared(
        book_id=slugged(book_id) if (book_id := _text(data, "book_id")) else None,
        title=_title(data),
        description=_description(data),
        base_url=_base_url(data),
        site=cast("Site", site) if site else None,
        exclude=_patterns(data),
        language=_language(data),
        modules=_modules(data),
        module_aliases=_module_aliases(data),
        defaults=Defaults(
            hardware_tier=_number(defaults, "hardware_tier", TIERS, "defaults.") or Defaults().hardware_tier,
            proficiency_level=_choice(defaults, "proficiency_level", LEVELS, "defaults.")
            or Defaults().proficiency_level,
            layer=_choice(defaults, "layer", LAYERS, "defaults.") or Defaults().layer,
        ),
        reader_tier=_number(reader, "hardware_tier", TIERS, "reader."),
        max_chapter=_number(limits, "max_chapter", range(1_000_000), "limits."),
        max_lesson=_number(limits, "max_lesson", range(1_000_000), "limits."),
    )


def _wrong(key: str, value: object, expected: str) -> BadManifest:
    return BadManifest(f"{MANIFEST}: {key} = {value!r:.200} cannot be used; write {expected}")


def _check_keys(table: dict[str, Any], name: str) -> None:
    for key in table:
        if key not in _KEYS[name]:
            near = difflib.get_close_matches(key, _KEYS[name], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(_KEYS[name])}"
            raise BadManifest(f"{MANIFEST}: unknown key {name + '.' if name else ''}{key}; {hint}")


def _table(data: dict[str, Any], name: str) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        raise _wrong(name, table, f"a table [{name}]")
    _check_keys(table, name)
    return table


def _text(data: dict[str, Any], key: str, where: str = "") -> str | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise _wrong(where + key, value, "a text in quotes")
    return " ".join(value.split())


def _title(data: dict[str, Any], where: str = "") -> str | None:
    title = _text(data, "title", where)
    if title is not None and not one_line(title):
        raise _wrong(where + "title", title, "a text in quotes")
    return one_line(title) if title is not None else None


def _description(data: dict[str, Any]) -> str | None:
    text = _text(data, "description")
    return one_line(text, MAX_DESCRIPTION) or None if text else None


def _choice(data: dict[str, Any], key: str, allowed: tuple[str, ...], where: str = "") -> str | None:
    value = data.get(key)
    if value is not None and value not in allowed:
        raise _wrong(where + key, value, f"one of {', '.join(allowed)}")
    return cast("str | None", value)


def _number(data: dict[str, Any], key: str, allowed: tuple[int, ...] | range, where: str) -> int | None:
    value = data.get(key)
    if value is not None and (type(value) is not int or value not in allowed):
        expected = ", ".join(map(str, allowed)) if isinstance(allowed, tuple) else "a whole number"
        raise _wrong(where + key, value, expected)
    return value


def _base_url(data: dict[str, Any]) -> str | None:
    url = _text(data, "base_url")
    if url is not None and not (url.startswith(("http://", "https://", "/")) and " " not in url and url.isprintable()):
        raise _wrong("base_url", url, 'where the pages are published, such as "https://example.org/docs"')
    return url


def _patterns(data: dict[str, Any]) -> tuple[str, ...]:
    patterns = data.get("exclude", [])
    if not isinstance(patterns, list) or not all(
        isinstance(item, str) and item.strip() and item.isprintable() for item in patterns
    ):
        raise _wrong("exclude", patterns, 'a list of patterns such as ["blog/**"]')
    return tuple(patterns)


def _language(data: dict[str, Any]) -> str | None:
    """The language code with hyphens: `en_GB` becomes `en-GB`."""
    if (text := _text(data, "language")) is None:
        return None
    language = text.replace("_", "-")
    if len(language) > MAX_LANGUAGE_CHARACTERS or not all(part.isalnum() for part in language.split("-")):
        raise _wrong("language", language, 'a language code such as "en"')
    return language


def _module_aliases(data: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    table = data.get("module_aliases", {})
    if not isinstance(table, dict):
        raise _wrong("module_aliases", table, 'a table [module_aliases] with lines such as simulation = "gazebo"')
    return tuple((slugged(alias), slugged(_text(table, alias, "module_aliases.") or "")) for alias in table)


def _modules(data: dict[str, Any]) -> tuple[ModuleInfo, ...]:
    tables = data.get("modules", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _wrong("modules", tables, "[[modules]] tables with slug, folder and title")
    modules: list[ModuleInfo] = []
    for table in tables:
        _check_keys(table, "modules")
        slug, folder = (_text(table, key, "modules.") for key in ("slug", "folder"))
        if not folder and not slug:
            raise BadManifest(f"{MANIFEST}: a [[modules]] table names neither slug nor folder; name its folder")
        folder = (folder or slug or "").strip("/").removeprefix("./")
        slug = slugged(slug or folder.rsplit("/", 1)[-1])
        if ".." in folder.split("/"):
            raise _wrong("modules.folder", folder, "a folder inside the book")
        if any(slug == module.slug or folder == module.folder for module in modules):
            raise BadManifest(f"{MANIFEST}: two [[modules]] tables have slug {slug!r} or folder {folder!r}; remove one")
        modules.append(ModuleInfo(slug=slug, folder=folder, title=_title(table, "modules.") or ""))
    return tuple(modules)
