"""Where a site publishes its pages, as far as its configuration says so in plain text. What a configuration computes or
takes from the environment is not known here: the book then has no `base_url`, unless its manifest names one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import yaml

from lectern.reading.docusaurus import without_comments
from lectern.reading.routes import without_prefix

_JS_TOKEN = re.compile(  # a value that is no text, or is only the beginning of an expression, is not matched
    r"(?<![\w$.])(?P<quote>['\"]?)(?P<name>url|baseUrl)(?P=quote)\s{0,20}(?:(?=[,}])|:\s{0,20}(?:"
    r"(?:'(?P<single>[^'\n]{1,300})'|\"(?P<double>[^\"\n]{1,300})\"|`(?P<template>[^`$\n]{1,300})`)"
    r"(?=[ \t]{0,20}(?:[,}\n]|\Z)))?)"
    r"|(?P<string>'[^'\\\n]{0,300}'|\"[^\"\\\n]{0,300}\"|`[^`\\]{0,3000}`)|(?P<bracket>[()\[\]{}])"
)
_PLACEHOLDERS = frozenset({"your-docusaurus-site.example.com", "your-docusaurus-test-site.com"})  # of a new site
_YAML_TEXT = "tag:yaml.org,2002:str"


def docusaurus_address(config: str, route: str, folder: str) -> str | None:
    """The address of the docs that have this `routeBasePath`; `folder` leads from their folder to the book's. None
    unless `url` and `baseUrl` are texts."""
    settings = _outer_settings(without_comments(config))
    url, base = settings.get("url"), settings.get("baseUrl")
    if url is None or base is None:
        return None
    return _joined(url, base, route, *(without_prefix(step) for step in folder.split("/")))


def mkdocs_address(site_url: yaml.Node | None, folder: str) -> str | None:
    """The address in `site_url`; None for one from the environment (`!ENV`)."""
    if not isinstance(site_url, yaml.ScalarNode) or site_url.tag != _YAML_TEXT:
        return None
    return _joined(str(site_url.value), folder)


def mdbook_address(output: object, folder: str) -> str | None:
    """The address in `[output.html]`: `site-url`, as a rule a path, and the domain `cname` if there is one."""
    html = output.get("html") if isinstance(output, Mapping) else None
    table: Mapping[str, Any] = html if isinstance(html, Mapping) else {}
    site, domain = table.get("site-url", "/"), table.get("cname", "")
    if not isinstance(site, str) or not isinstance(domain, str):
        return None
    if "://" in site:
        return _joined(site, folder)
    host = f"https://{domain}" if domain else ""
    return _joined(host, site, folder) if host or site != "/" else None


def _outer_settings(text: str) -> dict[str, str | None]:
    """The texts that `url` and `baseUrl` are in JavaScript; None for one that is computed. Those of the site itself are
    meant: menus and plugins lie deeper."""
    values: dict[str, tuple[int, str | None]] = {}
    depth = 0
    for match in _JS_TOKEN.finditer(text):
        if bracket := match["bracket"]:
            depth += 1 if bracket in "([{" else -1
        elif (name := match["name"]) and (name not in values or depth < values[name][0]):
            values[name] = depth, match["single"] or match["double"] or match["template"]
    return {name: value for name, (_, value) in values.items()}


def _joined(base: str, *paths: str) -> str | None:
    """An address of http or https, or a path from the root of a site, without a slash at its end; None for any other
    text."""
    steps = [step for path in paths for step in path.split("/") if step not in ("", ".")]
    address = "/".join([base.rstrip("/"), *steps])
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    is_site = parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)
    is_site = is_site and parts.hostname not in _PLACEHOLDERS
    is_path = not parts.scheme and not parts.netloc and address.startswith("/")
    return address if (is_site or is_path) and address.isprintable() and " " not in address else None
