"""`lectern ingest`: brings the index up to date with a book's folder."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer

from lectern.app.commands import Ingest, ShowJob
from lectern.app.watching import error_line, watching
from lectern.cli.options import Direct, Json
from lectern.cli.progress import shown_progress
from lectern.cli.remote import Run, open_runner
from lectern.cli.render import fail, run_async
from lectern.cli.terminal import echo, print_json
from lectern.domain.jobs import OPEN_STATUSES, Mode

MODES: tuple[Mode, ...] = get_args(Mode)
MAX_PROBLEMS_SHOWN = 20  # --json lists all
POLL_SECONDS, MAX_END_SECONDS = 0.2, 10.0  # until an interrupted job has ended on a server
MAX_MESSAGE = 400  # characters of a problem; --json has all


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
    remarks: list[str] = []
    if watch:
        run_async(_watch(path, order, remarks, direct=direct, json=json), remarks=remarks)
    failed = run_async(_ingest(order, remarks, direct=direct, json=json), remarks=remarks)
    if strict and failed:
        raise typer.Exit(2)


async def _ingest(order: Ingest, remarks: list[str], *, direct: bool, json: bool) -> int:
    """Ingest once; returns how many files failed. If Ctrl-C interrupts it, a remark says what is kept."""
    plan: dict[str, Any] = {}
    job: dict[str, Any] | None = None
    async with open_runner(direct=direct, create=True) as run_command:
        with shown_progress() as progress:
            try:
                async for line in run_command(order):
                    progress.take(line)
                    if line["kind"] == "planned":
                        plan = line["plan"]
                    elif line["kind"] == "finished":
                        job = line["job"]
            except asyncio.CancelledError:
                remarks.append(await _kept(progress.job_id, run_command))
                raise
    if job is None:
        _show_plan(plan, json=json)
        return 0
    if json:
        print_json(job)
    else:
        show_job(job)
    return int(job["files_failed"])


async def _kept(job_id: int, run_command: Run) -> str:
    """What is kept of an interrupted job. A server learns of the interruption a moment later."""
    if not job_id:
        return "nothing was changed"
    waits = int(MAX_END_SECONDS / POLL_SECONDS)
    for _ in range(waits):
        [job] = [line async for line in run_command(ShowJob(job_id=job_id))]
        if job["status"] not in OPEN_STATUSES:
            break
        await asyncio.sleep(POLL_SECONDS)
    else:
        return f"job {job_id} goes on: lectern jobs follow {job_id}"
    if job["status"] == "completed":
        return "the book was indexed completely"
    files, chunks = job["files_processed"] + job["files_skipped"], job["chunks_created"] + job["chunks_kept"]
    if not files:
        return f"no file is indexed yet, but {job['chunks_embedded']:,} embedded texts are kept for the same command"
    indexed = f"{files:,} of {job['files_discovered']:,} files ({chunks:,} chunks)"
    return f"{indexed} are indexed and kept, and the same command goes on from there"


async def _watch(path: Path, order: Ingest, remarks: list[str], *, direct: bool, json: bool) -> NoReturn:
    """Ingest now and again after each pause in the edits; edits during an ingestion are not missed."""
    async with watching(path) as watch:
        if not json:
            echo(f"Watching {path} for edits (Ctrl-C stops)")
        await _ingest(order, remarks, direct=direct, json=json)
        later = dataclasses.replace(order, mode="incremental", replace=False)
        while True:
            await watch.edits()
            try:
                await _ingest(later, remarks, direct=direct, json=json)
            except Exception as exc:  # noqa: BLE001  # the next edit may repair it
                echo(f"lectern: {error_line(exc)}", err=True)


def _show_plan(plan: dict[str, Any], *, json: bool) -> None:
    if json:
        print_json(plan)
        return
    _show_problems(plan)
    for name in ("new", "modified", "moved", "deleted", "unchanged"):
        echo(f"{name:>9}: {len(plan[name])}")
        if name != "unchanged":
            for file in plan[name]:
                echo(f"           {' → '.join(file) if isinstance(file, list | tuple) else file}")
    chunks = plan["chunks"]
    echo(f"   chunks: {chunks['add']} to add, {chunks['keep']} to keep, {chunks['remove']} to remove")
    echo(f" left out: {plan['files_left_out']} files")
    echo(f" includes: {plan['includes_read']} read, {plan['includes_failed']} failed")
    echo(f" language: {plan['language']}")


def _show_problems(report: dict[str, Any]) -> None:
    problems = [(kind, problem) for kind in ("error", "warning") for problem in report[f"{kind}s"]]
    for kind, problem in problems[:MAX_PROBLEMS_SHOWN]:
        line = f":{problem['line']}" if problem["line"] else ""
        message = problem["message"]
        message = message if len(message) <= MAX_MESSAGE else f"{message[: MAX_MESSAGE - 1]}…"
        echo(f"{kind}: {problem['file']}{line}: {message}", err=True)
    if len(problems) > MAX_PROBLEMS_SHOWN:
        echo(f"… and {len(problems) - MAX_PROBLEMS_SHOWN} more; --json lists them all", err=True)


def show_job(job: dict[str, Any]) -> None:
    """Print a finished job."""
    _show_problems(job)
    echo(
        f"{job['book_id']}: {job['files_processed']} lessons indexed, {job['files_skipped']} unchanged, "
        f"{job['files_failed']} failed, {job['files_deleted']} removed{_rest(job)}; "
        f"chunks {job['chunks_created']} new, {job['chunks_kept']} kept, {job['chunks_deleted']} gone; "
        f"{job['chunks_embedded']} texts embedded in {job['duration_seconds']} s"
        f"{'; language ' + job['language'] if job['language'] else ''}"
    )


def _rest(job: dict[str, Any]) -> str:
    """What a report says only if there is something to say: files that are not in the book, and includes."""
    parts = [f"{job['files_left_out']} files left out"] if job["files_left_out"] else []
    directives = job["includes_read"] + job["includes_failed"]
    if directives:
        parts.append(f"{job['includes_read']} includes read, {job['includes_failed']} failed")
    return "".join(f", {part}" for part in parts)
