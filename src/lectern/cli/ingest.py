"""`lectern ingest`: brings the index up to date with a book's folder."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer

from lectern.app.commands import Ingest
from lectern.app.watching import error_line, watching
from lectern.cli.options import Direct, Json
from lectern.cli.remote import run
from lectern.cli.render import fail, print_json, run_async
from lectern.domain.jobs import Mode

MODES: tuple[Mode, ...] = get_args(Mode)
MAX_PROBLEMS_SHOWN = 20  # --json lists all


def ingest(  # noqa: PLR0913  # one parameter an option
    path: Annotated[Path, typer.Argument(help="The book's folder.")],
    book: Annotated[
        str | None, typer.Option("--book", help="The book's id; default: lectern.toml's or the folder's name.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="incremental, full or recreate.")] = "incremental",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Continue even if the folder looks like another book.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running, and ingest again whenever the book is edited.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 2 when a file failed.")] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Index a book's folder, or bring its index up to date."""
    if mode not in MODES:
        fail(f"--mode must be one of {', '.join(MODES)}, not {mode!r}", 2)
    if path.is_file():
        fail(f"{str(path)!r} is a file; name the folder that holds the book", 2)
    if not path.is_dir():
        fail(f"there is no folder {str(path)!r}; name the folder that holds the book's Markdown files", 2)
    if watch and dry_run:
        fail("--watch and --dry-run exclude each other", 2)
    order = Ingest(folder=str(path.absolute()), book=book, mode=mode, dry_run=dry_run, replace=replace)
    if watch:
        run_async(_watch(path, order, direct=direct, json=json))
    failed = run_async(_ingest(order, direct=direct, json=json))
    if strict and failed:
        raise typer.Exit(2)


async def _ingest(order: Ingest, *, direct: bool, json: bool) -> int:
    """Ingest once; returns how many files failed."""
    plan: dict[str, Any] = {}
    job: dict[str, Any] | None = None
    with _progress(quiet=json or order.dry_run) as advance:
        async for line in run(order, direct=direct, create=True):
            if line["kind"] == "planned":
                plan = line["plan"]
            elif line["kind"] == "indexed":
                advance(line["done"], line["total"])
            else:
                job = line["job"]
    if job is None:
        _show_plan(plan, json=json)
        return 0
    if json:
        print_json(job)
    else:
        show_job(job)
    return int(job["files_failed"])


async def _watch(path: Path, order: Ingest, *, direct: bool, json: bool) -> NoReturn:
    """Ingest now and again after each pause in the edits; edits during an ingestion are not missed."""
    async with watching(path) as watch:
        if not json:
            typer.echo(f"Watching {path} for edits (Ctrl-C stops)")
        await _ingest(order, direct=direct, json=json)
        later = dataclasses.replace(order, mode="incremental", replace=False)
        while True:
            await watch.edits()
            try:
                await _ingest(later, direct=direct, json=json)
            except Exception as exc:  # noqa: BLE001  # the next edit may repair it
                typer.echo(f"lectern: {error_line(exc)}", err=True)


Advance = Callable[[int, int], None]


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Advance]:
    if quiet:
        yield lambda _count, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("Indexing lessons", total=None)
        yield lambda count, total: progress.update(task, completed=count, total=total)


def _show_plan(plan: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(plan)
        return
    _show_problems(plan)
    for name in ("new", "modified", "moved", "deleted", "unchanged"):
        typer.echo(f"{name:>9}: {len(plan[name])}")
        if name != "unchanged":
            for file in plan[name]:
                typer.echo(f"           {' → '.join(file) if isinstance(file, list | tuple) else file}")
    chunks = plan["chunks"]
    typer.echo(f"   chunks: {chunks['add']} to add, {chunks['keep']} to keep, {chunks['remove']} to remove")


def _show_problems(report: dict[str, Any]) -> None:
    problems = [(kind, problem) for kind in ("error", "warning") for problem in report[f"{kind}s"]]
    for kind, problem in problems[:MAX_PROBLEMS_SHOWN]:
        line = f":{problem['line']}" if problem["line"] else ""
        typer.echo(f"{kind}: {problem['file']}{line}: {problem['message']}", err=True)
    if len(problems) > MAX_PROBLEMS_SHOWN:
        typer.echo(f"… and {len(problems) - MAX_PROBLEMS_SHOWN} more; --json lists them all", err=True)


def show_job(job: dict[str, Any]) -> None:
    """Print a finished job."""
    _show_problems(job)
    typer.echo(
        f"{job['book_id']}: {job['files_processed']} lessons indexed, {job['files_skipped']} unchanged, "
        f"{job['files_failed']} failed, {job['files_deleted']} removed; "
        f"chunks {job['chunks_created']} new, {job['chunks_kept']} kept, {job['chunks_deleted']} gone; "
        f"{job['chunks_embedded']} texts embedded in {job['duration_seconds']:.1f} s"
    )
