"""Docs are tests: what is written is what is there."""

import re
import runpy

import pytest

from tests.conftest import ROOT

PAGES = runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))["PAGES"]
GENERATED_PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("name", PAGES)
def test_pages_made_from_the_code_are_current(name: str) -> None:
    """A command, setting or endpoint that is not in the docs fails here; `make docs` mends it."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name]()


@pytest.mark.parametrize("page", GENERATED_PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page) -> None:
    """No page points to a file that is not there."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_decision_is_listed() -> None:
    """`docs/decisions/README.md` names each page beside it."""
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")

    assert [page.name for page in folder.glob("0*.md") if page.stem not in index] == []


def test_every_make_target_in_the_docs_exists() -> None:
    """`make x` in a page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    linked = {
        target
        for page in GENERATED_PAGES
        for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert linked <= targets


def test_the_newest_migration_is_the_one_that_is_checked_for() -> None:
    """The version the database is compared with is the last file of the migrations."""
    from lectern.store.database import HEAD

    files = sorted((ROOT / "src/lectern/store/migrations/versions").glob("v*.py"))
    assert files[-1].name.startswith(f"v{HEAD}_")


def test_no_address_of_a_package_index_is_recorded() -> None:
    """Lock files name packages and hashes, never where they were fetched."""
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text(encoding="utf-8")
        assert not re.search(r"--[\w-]*index", text)  # an option that names one
        assert "http://" not in text
        assert "https://" not in text
