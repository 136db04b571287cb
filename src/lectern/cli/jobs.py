"""`lectern jobs`: lists, follows, starts and cancels ingestions, whoever started them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from lectern.app.commands import CancelJob, FollowJob, ListJobs, ShowJob, StartJob
from lectern.cli.ingest import MODES, show_job
from lectern.cli.options import Direct, Json
from lectern.cli.progress import shown_progress
from lectern.cli.remote import run, run_all, run_one
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import echo, print_json

app = typer.Typer(help="List, read, follow, start and cancel ingestions.", no_args_is_help=True, rich_markup_mode=None)
JobId = Annotated[int, typer.Argument(metavar="JOB", min=1, max=2**31 - 1, help="The job's number.")]


@app.command("list")
def list_jobs(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = 20,
    book: Annotated[str | None, typer.Option("--book", help="Only this book's.")] = None,
    *,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """List ingestions, the newest first."""
    jobs = run_async(run_all(ListJobs(limit=limit, book=book), direct=direct))
    if json:
        print_json(jobs)
        return
    if not jobs:
        echo("No ingestion yet; begin one with: lectern ingest PATH")
    for job in jobs:
        echo(_line(job))


@app.command("show")
def show(job_id: JobId, *, direct: Direct = False, json: Json = False) -> None:
    """Show an ingestion with its report."""
    _print(run_async(run_one(ShowJob(job_id=job_id), direct=direct)), json=json)


@app.command("follow")
def follow(job_id: JobId, *, direct: Direct = False, json: Json = False) -> None:
    """Follow an ingestion until it has ended, then show its report; Ctrl-C does not end it."""
    _print(run_async(_follow(job_id, direct=direct), remarks=[f"job {job_id} goes on"]), json=json)


async def _follow(job_id: int, *, direct: bool) -> dict[str, Any]:
    """The job as it ended."""
    job: dict[str, Any] = {}
    with shown_progress() as progress:
        async for line in run(FollowJob(job_id=job_id), direct=direct):
            progress.take(line)
            job = line.get("job", job)
    return job


@app.command("cancel")
def cancel(job_id: JobId, *, direct: Direct = False, json: Json = False) -> None:
    """Cancel an ingestion; what was finished is kept."""
    _print(run_async(run_one(CancelJob(job_id=job_id), direct=direct)), json=json)


@app.command("start")
def start(
    book: Annotated[str, typer.Argument(metavar="BOOK", help="The book's id.")],
    source: Annotated[
        Path | None, typer.Option("--source", help="The book's folder; default: where it was read from before.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", help="incremental, full or recreate.")] = "incremental",
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Continue even if the folder looks like another book.")
    ] = False,
    direct: Direct = False,
    json: Json = False,
) -> None:
    """Start an ingestion on a running server and do not wait for it; without a server, ingest here and now."""
    if mode not in MODES:
        fail(f"--mode must be one of {', '.join(MODES)}, not {mode!r}", 2)
    if source is not None and not source.is_dir():
        fail(f"there is no folder {str(source)!r}; name the folder that holds the book's Markdown files", 2)
    folder = None if source is None else str(source.resolve())
    order = StartJob(book=book, source=folder, mode=mode, replace=replace)
    _print(run_async(run_one(order, direct=direct)), json=json)


def _print(job: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(job)
        return
    echo(_line(job))
    if job["error_message"]:
        echo(f"   {job['error_message']}")
    if job["waiting_since"]:
        echo(f"   waiting since {job['waiting_since']} for {job['waiting_for']}")
    if job["completed_at"] and job["status"] == "completed":
        show_job(job)


def _line(job: dict[str, Any]) -> str:
    took = f"{job['duration_seconds']} s" if job["duration_seconds"] is not None else ""
    return (
        f"{job['job_id']:>5}  {job['status']:<9}  {job['queued_at']}  {job['book_id']}  {job['mode']}  {took}".rstrip()
    )
