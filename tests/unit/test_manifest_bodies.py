"""Manifests in the database are read by the version before and the version after, which share it during an upgrade."""

from __future__ import annotations

import json
from dataclasses import replace

from lectern.domain.books import Manifest
from lectern.store.bodies import manifest_from_json, manifest_to_json

MANIFEST = Manifest(book_id="robots", title="Robots")


def test_a_manifest_is_read_as_it_was_written() -> None:
    """With other names of modules and without."""
    for manifest in (MANIFEST, replace(MANIFEST, module_aliases=(("simulation", "gazebo"),))):
        assert manifest_from_json(manifest_to_json(manifest)) == manifest


def test_an_older_version_reads_a_manifest() -> None:
    """It does not know other names of modules; a book that has none is written without them."""
    assert "module_aliases" not in json.loads(manifest_to_json(MANIFEST))


def test_fields_of_a_newer_version_are_left_out() -> None:
    """They do not make the row unreadable."""
    body = {**json.loads(manifest_to_json(MANIFEST)), "added_later": 1}

    assert manifest_from_json(json.dumps(body)) == MANIFEST
