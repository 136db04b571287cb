"""`lectern insights`: what readers asked a book, and how it went."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lectern.app.commands import ShowInsights
from lectern.cli.options import Book, BookArgument, Direct, Json, book_from_either
from lectern.cli.remote import run_one
from lectern.cli.render import run_async
from lectern.cli.terminal import echo, print_json
from lectern.domain.insights import DEFAULT_DAYS, MAX_DAYS

MAX_ROWS = 10  # of each list; --json has all


def insights(
    book: BookArgument = None,
    *,
    book_option: Book = None,
    days: Annotated[int, typer.Option("--days", min=1, max=MAX_DAYS, help="Today and the days before.")] = DEFAULT_DAYS,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Show what readers asked a book: what was refused, what is cited, and the feedback."""
    command = ShowInsights(book=book_from_either(book, book_option), days=days)
    insights_out = run_async(run_one(command, direct=direct))
    if json:
        print_json(insights_out)
    else:
        _show(insights_out)


def _show(insights_out: dict[str, Any]) -> None:
    """Print the counts, then each list."""
    thumbs, days = insights_out["thumbs"], insights_out["days"]
    echo(f"{insights_out['book_id']}: the last {days} day{'s' if days != 1 else ''}", bold=True)
    echo(
        f"   {insights_out['turns']} questions: {insights_out['answered']} answered "
        f"({insights_out['low']} with low confidence), {insights_out['refused']} refused"
    )
    reasons = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in thumbs["reasons"].items())
    echo(f"   thumbs: {thumbs['up']} up, {thumbs['down']} down{f' ({reasons})' if reasons else ''}")
    if insights_out["more"]:
        echo(f"   Only the newest {insights_out['max_turns']} questions were read.")
    _show_groups("Refused, by nearest lesson", insights_out["refused_questions"])
    _show_groups("Low confidence, by cited lesson", insights_out["low_questions"])
    cited = [f"{row['count']:>5}  {row['title']} › {row['section']}" for row in insights_out["most_cited"]]
    _show_list("Most cited", cited)
    never = [f"       {row['title']} › {row['section']}" for row in insights_out["never_cited"]]
    total = f"{insights_out['never_cited_total']} of {insights_out['sections']} sections"
    _show_list(f"Never cited ({total})", never, total=insights_out["never_cited_total"])


def _show_groups(heading: str, groups: list[dict[str, Any]]) -> None:
    lines = []
    for group in groups:
        lines.append(f"{group['count']:>5}  {group['title'] or '(no lesson)'}")
        lines += [f"         {question}" for question in group["questions"] or ()]
    _show_list(heading, lines)


def _show_list(heading: str, lines: list[str], total: int | None = None) -> None:
    """The first lines; `total` is how many there would be if the answer did not end before."""
    if not lines:
        return
    echo(f"\n{heading}", bold=True)
    for line in lines[:MAX_ROWS]:
        echo(line)
    if len(lines) > MAX_ROWS:
        more = f"{(total or len(lines)) - MAX_ROWS} more"
        is_complete = total is None or total == len(lines)
        echo(f"       … {more} with --json" if is_complete else f"       … {more}; --json has the first {len(lines)}")
