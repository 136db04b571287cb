"""`lectern books`, `outline`, `lesson`, `chunks`: show what is indexed."""

from __future__ import annotations

from typing import Annotated

import typer

from lectern.app.commands import ListBooks, ListChunks, RemoveBook, ShowLesson, ShowOutline
from lectern.cli.options import Book, BookArgument, Direct, Json, book_from_either
from lectern.cli.remote import run_all, run_one
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import confirm, echo, print_json


def books(
    *,
    remove: Annotated[
        str | None, typer.Option("--remove", metavar="BOOK", help="Take this book out of the index; its files stay.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """List the indexed books, or remove one."""
    if remove is not None:
        _remove(remove, yes=yes, direct=direct, json=json)
        return
    indexed_books = run_async(run_all(ListBooks(), direct=direct))
    if json:
        print_json(indexed_books)
        return
    if not indexed_books:
        echo("No book is indexed yet; run: lectern ingest PATH")
    for book in indexed_books:
        latest = max(
            filter(None, (book["last_full_ingest"], book["last_incremental_update"])), default="never finished"
        )
        echo(f"{book['book_id']}: {book['title']}", bold=True)
        echo(f"   {book['total_chunks']} chunks · {book['fingerprint']} · {latest}")


def outline(book: BookArgument = None, *, book_option: Book = None, direct: Direct = False, json: Json = False) -> None:
    """Show a book's modules, chapters and lessons."""
    outline_out = run_async(run_one(ShowOutline(book=book_from_either(book, book_option)), direct=direct))
    if json:
        print_json(outline_out)
        return
    echo(outline_out["title"], bold=True)
    for module in outline_out["modules"]:
        echo(f"  {module['title']}  ({module['module']})", bold=True)
        for chapter in module["chapters"]:
            echo(f"    {chapter['title']}")
            for lesson_ in chapter["lessons"]:
                echo(f"      {lesson_['lesson']:>3}  {lesson_['title']}  {lesson_['url']}")


def lesson(
    parent_doc_id: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The lesson's id (parent_doc_id), as `lectern search` shows it after `lesson`."
        ),
    ],
    book: Book = None,
    *,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Show a whole lesson, in order."""
    lesson_out = run_async(run_one(ShowLesson(parent_doc_id=parent_doc_id, book=book), direct=direct))
    if json:
        print_json(lesson_out)
        return
    echo(lesson_out["breadcrumb"], bold=True)
    echo(f"{lesson_out['source_file']}  {lesson_out['url']}\n")
    for chunk in lesson_out["chunks"]:
        echo(f"{chunk['text']}\n")


def chunks(book: BookArgument = None, *, book_option: Book = None, direct: Direct = False, json: Json = False) -> None:
    """List every chunk that the index actually holds; with --json one object a line."""
    for line in run_async(run_all(ListChunks(book=book_from_either(book, book_option)), direct=direct)):
        if json:
            print_json(line)
        else:
            chunk = line["payload"]
            place = f"{chunk['source_file']}:{chunk['line_start']}-{chunk['line_end']}"
            title = chunk["section_title"] or chunk["lesson_title"]
            echo(f"{line['id']}  {place}  {title}  ({chunk['word_count']} words)")


def _remove(book: str, *, yes: bool, direct: bool, json: bool) -> None:
    if not yes and not confirm(f"Take {book!r} out of the index? Its files stay."):
        fail("nothing was removed; --yes removes without asking", 2)
    removal = run_async(run_one(RemoveBook(book=book), direct=direct))
    if json:
        print_json(removal)
    else:
        echo(f"{removal['book_id']}: removed, {removal['chunks_deleted']} chunks gone")
