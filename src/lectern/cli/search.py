"""`lectern search`: finds passages of a book."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Annotated, Any, get_args

import typer

from lectern.app.commands import Search
from lectern.cli.options import Direct, Json, with_scope
from lectern.cli.remote import run_one
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import clean, echo, echo_styled, print_json
from lectern.domain.scope import Scope, SearchMode

MODES: tuple[SearchMode, ...] = get_args(SearchMode)
PASSAGE_LENGTH = 320  # characters


@with_scope
def search(  # noqa: PLR0913  # one parameter an option
    text: Annotated[str, typer.Argument(help="What to look for, 3 to 1000 characters.")],
    limit: Annotated[int, typer.Option("--limit", help="Results on a page, 1 to 20.")] = 5,
    page: Annotated[int, typer.Option("--page", help="Which page; on a terminal Enter shows the next.")] = 1,
    mode: Annotated[str, typer.Option("--mode", help="hybrid, dense, lexical or reranked.")] = "hybrid",
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Lowest relevance of a result, 0 to 1.")
    ] = None,
    expand: Annotated[int, typer.Option("--expand", help="Neighbours to show around each result, 0 to 5.")] = 0,
    *,
    scope: Scope,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Find the passages of a book that are nearest to a text; words of the text are marked in them."""
    if mode not in MODES:
        fail(f"--mode must be one of {', '.join(MODES)}, not {mode!r}", 2)
    if page < 1:
        fail(f"--page must be 1 or more, not {page}", 2)
    query = Search(
        text=text,
        scope=scope,
        limit=limit,
        mode=mode,
        expand=expand,
        similarity_threshold=threshold,
    )
    while True:
        response = run_async(run_one(replace(query, offset=(page - 1) * limit), direct=direct))
        if json:
            print_json(response)
            return
        _show(response, first=page == 1)
        if not _more(response, page * limit):
            return
        page += 1


def _more(response: dict[str, Any], shown_count: int) -> bool:
    """Ask whether to show the next page; no if this is not a terminal."""
    remaining = response["total_found"] - shown_count
    if remaining <= 0:
        return False
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    answer = typer.prompt(f"{remaining} more; Enter shows them, q stops", default="", show_default=False)
    return not answer.strip().lower().startswith("q")


def _show(response: dict[str, Any], *, first: bool) -> None:
    if not response["results"]:
        echo("Nothing was found in that scope." if first else "There are no more results.")
    for result in response["results"]:
        echo(f"{result['rank']}. {result['breadcrumb']}", bold=True)
        title, url = _section(result)
        place = f"{result['source_file']}:{result['line_start']}"
        echo(f"   § {title}  {url}  ({place}, lesson {result['parent_doc_id']})")
        echo(f"   score {result['score']:.2f}, relevance {result['relevance']:.2f}")
        for neighbour in result["before"]:
            echo(f"   … {passage(neighbour['text'], [])}", dim=True)
        echo_styled(f"   {passage(clean(result['text']), result['marks'])}")
        for neighbour in result["after"]:
            echo(f"   … {passage(neighbour['text'], [])}", dim=True)
        echo()


def _section(result: dict[str, Any]) -> tuple[str, str]:
    """Title and address of the section that the shown passage is from; a chunk may contain several short sections."""
    start, end = _densest(result["text"], result["marks"], PASSAGE_LENGTH)
    first = next((begin for begin, stop in result["marks"] if start <= begin and stop <= end), start)
    earlier_sections = [section for section in result["sections"] if section["at"] <= first]
    if earlier_sections:
        return earlier_sections[-1]["title"], earlier_sections[-1]["url"]
    return result["section_title"] or result["lesson_title"], result["url"]


def passage(text: str, marks: list[tuple[int, int]], max_length: int = PASSAGE_LENGTH) -> str:
    """The part of a text with most of the marked words, on one line, with those words highlighted."""
    start, end = _densest(text, marks, max_length)
    inside = [(begin, stop) for begin, stop in marks if start <= begin and stop <= end]
    out, at = "", start
    for begin, stop in inside:
        out += text[at:begin] + typer.style(text[begin:stop], bold=True, underline=True)
        at = stop
    flat = " ".join((out + text[at:end]).split())
    return f"{'… ' if start else ''}{flat}{' …' if end < len(text) else ''}"


def _densest(text: str, marks: list[tuple[int, int]], max_length: int) -> tuple[int, int]:
    """The span of at most `max_length` characters with the most different marked words, cut between words."""
    if len(text) <= max_length:
        return 0, len(text)

    def distinct_words(begin: int) -> int:
        return len(
            {
                text[start_mark:end_mark].lower()
                for start_mark, end_mark in marks
                if begin <= start_mark and end_mark <= begin + max_length
            }
        )

    start = max((begin for begin, _ in marks), key=lambda begin: (distinct_words(begin), -begin), default=0)
    start = max(0, min(start - max_length // 6, len(text) - max_length))  # a few words before the first
    if start:
        start = text.find(" ", start) + 1 or start
    end = min(len(text), start + max_length)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    return start, end
