"""Where a book may be read from: below the operator's folders, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lectern.app.settings import Settings
from lectern.domain.errors import BadInput, ConfigError
from lectern.jobs.sources import allowed_folder, check_roots, named_after, own_folder, still_allowed


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    """Two allowed folders, a forbidden one beside them, and links that lead from one to the other."""
    for name in ("books/robots/docs", "books/tilde ~ and öd", "more/other", "secret/inner", "books-evil/x"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "books/out").symlink_to(tmp_path / "secret")
    (tmp_path / "books/robots/out").symlink_to("../../secret/inner")
    (tmp_path / "books/loop").symlink_to("loop")
    (tmp_path / "books/in").symlink_to("robots/docs")
    (tmp_path / "books/file.md").write_text("# File\n", encoding="utf-8")
    (tmp_path / "alias").symlink_to("books")
    return tmp_path


def roots(ground: Path) -> tuple[Path, ...]:
    """What the operator allowed; one of them by a link."""
    return (ground / "alias", ground / "more")


@pytest.mark.parametrize(
    ("source", "leads_to"),
    [
        ("robots", "books/robots"),
        ("robots/docs", "books/robots/docs"),
        ("./robots//docs/", "books/robots/docs"),
        (".", "books"),
        ("other", "more/other"),
        ("in", "books/robots/docs"),
        ("tilde ~ and öd", "books/tilde ~ and öd"),
        ("{ground}/books/robots", "books/robots"),
        ("{ground}/alias/robots", "books/robots"),
        ("{ground}/more", "more"),
    ],
)
def test_what_lies_below_is_found(ground: Path, source: str, leads_to: str) -> None:
    """Absolute or relative, by whatever link: the folder itself, with every link followed."""
    folder = allowed_folder(source.format(ground=ground), roots(ground))

    assert folder == (ground / leads_to).resolve()
    assert still_allowed(str(folder), roots(ground))


@pytest.mark.parametrize(
    "source",
    [
        "..",
        "../secret",
        "robots/../../secret",
        "robots/..",
        "{ground}/books/../secret",
        "{ground}/secret",
        "{ground}/books-evil/x",
        "{ground}",
        "/",
        "/etc",
        "//etc",
        "/proc/self/cwd/..",
        "/dev/null",
        "out",
        "out/inner",
        "robots/out",
        "{ground}/alias/out",
        "{ground}/no-such-thing",
        "/no/such/thing",
        "robots\0/../../secret",
        "\0",
        "robots\n",
        "\udc80robots",
        " ",
        "x" * 2000,
        "none",
        "file.md",
        "robots/none",
        "~",
        "%2e%2e/secret",
        "..\\secret",
        "loop",
    ],
)
def test_what_does_not_is_refused_alike(ground: Path, source: str) -> None:
    """Tricks and honest mistakes get one answer, whether there is something at the other end or not."""
    source_text = source.format(ground=ground)
    with pytest.raises(BadInput) as refused:
        allowed_folder(source_text, roots(ground))

    assert refused.value.field == "source"
    assert "is no folder below those that books may be read from" in str(refused.value)
    assert str(ground) not in str(refused.value).replace(repr(source_text), "")


def test_nothing_is_allowed_by_default(ground: Path) -> None:
    """Without LECTERN_BOOKS no folder can be named."""
    with pytest.raises(BadInput):
        allowed_folder(str(ground / "books/robots"), ())
    assert Settings().books == ()


def test_a_folder_that_was_exchanged_for_a_link_is_not_what_was_allowed(ground: Path) -> None:
    """A queued job is checked again before it is taken up."""
    folder = allowed_folder("robots/docs", roots(ground))
    folder.rmdir()
    folder.symlink_to(ground / "secret")

    assert not still_allowed(str(folder), roots(ground))
    assert not still_allowed(str(ground / "more"), ())


def test_folders_are_listed_as_in_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LECTERN_BOOKS is split at the system's separator; one that is not there is refused when a server starts."""
    monkeypatch.setenv("LECTERN_BOOKS", f"{tmp_path}{os.pathsep}{tmp_path / 'gone'}{os.pathsep}")
    books = Settings().books

    assert books == (tmp_path, tmp_path / "gone")
    with pytest.raises(ConfigError, match="LECTERN_BOOKS"):
        check_roots(books)


@pytest.mark.parametrize(
    ("source", "allowed"),
    [
        ("robots", True),
        ("robots/docs", True),
        ("in", True),  # a link into the book's own folder
        ("{ground}/books/robots", True),
        (".", False),
        ("{ground}/books", False),
        ("tilde ~ and öd", False),
        ("other", False),
        ("{ground}/more", False),
        ("out", False),
        ("none", False),
    ],
)
def test_a_book_has_its_own_folder(ground: Path, source: str, *, allowed: bool) -> None:
    """A caller who is held to one book reaches that book's folder and what is in it, by any name, and nothing else."""
    try:
        own_folder(source.format(ground=ground), roots(ground), named_after("robots", roots(ground)), ())
    except BadInput:
        assert not allowed
    else:
        assert allowed


def test_a_folder_that_overlaps_another_books_is_nobodys_own(ground: Path) -> None:
    """A folder that is, holds or lies in another book's is refused, even if the book was read from there before."""
    for own, foreign in (("robots", "robots"), ("robots", "robots/docs"), ("robots/docs", "robots")):
        folders = {name: str(ground / "books" / name) for name in (own, foreign)}
        with pytest.raises(BadInput):
            own_folder(own, roots(ground), [folders[own]], [folders[foreign]])
    assert own_folder("robots", roots(ground), [str(ground / "books/robots")], [str(ground / "books/robots-2")])
