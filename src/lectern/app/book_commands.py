"""What the terminal can ask for, as plain JSON in and JSON lines out. A command that finds the home free runs its
action here and now; while a server owns the home, the very same action runs inside that server. One code, whoever
carries it out. The shapes of answers are imported by the actions that give them: an ingestion has no use for them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from lectern.app.open import Lectern
from lectern.domain.errors import BadInput
from lectern.domain.jobs import Finished, LessonsIndexed, Planned
from lectern.domain.scope import Scope
from lectern.ingestion.ingest import IngestRequest
from lectern.schemas.payload import to_payload

Params = dict[str, Any]
Lines = AsyncIterator[dict[str, Any]]
Action = Callable[[Lectern, Params], Lines]


async def search(lectern: Lectern, params: Params) -> Lines:
    """One SearchResponse."""
    from lectern.index.lexical import shared_words
    from lectern.schemas.search import SearchResponse

    given = {name: params[name] for name in ("limit", "mode", "offset", "expand", "similarity_threshold")}
    found = await lectern.search(params["text"], scope=_scope(params), **given)
    yield SearchResponse.of(found, shared_words).model_dump()


async def ask(lectern: Lectern, params: Params) -> Lines:
    """One ChatResponse."""
    from lectern.conversations.runs import watched
    from lectern.schemas.chat import ChatResponse

    async def reply() -> dict[str, Any]:
        scope = _scope(params)
        entry = await lectern.book(scope.book_id)
        said = await lectern.ask(
            params["text"],
            scope=scope,
            top_k=params["top_k"],
            similarity_threshold=params.get("similarity_threshold"),  # older commands do not send it
        )
        return ChatResponse.of(said, book_id=entry.manifest.book_id).model_dump()

    yield await watched(reply(), params["text"], lectern.watchers)


async def chunks(lectern: Lectern, params: Params) -> Lines:
    """Every chunk that the index really holds, a line each."""
    for stored in await lectern.chunks(params["book"]):
        yield {"id": stored.chunk.id, "payload": to_payload(stored)}


async def books(lectern: Lectern, params: Params) -> Lines:  # every action has the same shape
    """Every indexed book, a line each."""
    from lectern.schemas.books import BookOut

    for entry in await lectern.books():
        yield BookOut.of(entry).model_dump()


async def remove(lectern: Lectern, params: Params) -> Lines:
    """How many chunks were taken out with a book."""
    yield {"book_id": params["book"], "chunks_deleted": await lectern.remove(params["book"])}


async def outline(lectern: Lectern, params: Params) -> Lines:
    """One outline."""
    yield dataclasses.asdict(await lectern.outline(params["book"]))


async def lesson(lectern: Lectern, params: Params) -> Lines:
    """One whole lesson."""
    from lectern.schemas.books import LessonOut

    yield LessonOut.of(await lectern.lesson(params["parent_doc_id"], book=params["book"])).model_dump()


async def calibrate(lectern: Lectern, params: Params) -> Lines:
    """What calibrating a book came to."""
    from lectern.confidence.calibration import LabelledQuestion

    asked = [LabelledQuestion(text=one["text"], answerable=one["answerable"]) for one in params["questions"]]
    yield dataclasses.asdict(await lectern.calibrate(params["book"], asked))


async def doctor(lectern: Lectern, params: Params) -> Lines:
    """Every disagreement between index and ledger, a line each."""
    async for finding in lectern.examine(mend=params["mend"]):
        yield dataclasses.asdict(finding)


async def ingest(lectern: Lectern, params: Params) -> Lines:
    """The plan, then progress, then the job."""
    request = IngestRequest(
        folder=Path(params["folder"]),
        book_id=params["book"],
        mode=params["mode"],
        dry_run=params["dry_run"],
        replace=params["replace"],
    )
    async for event in lectern.ingesting(request):
        match event:
            case Planned():
                plan = dataclasses.asdict(event.plan)
                del plan["replacements"]  # how it will be done, not what
                plan["chunks"] = dataclasses.asdict(event.forecast) if event.forecast else None
                plan |= {"warnings": plan_problems(event, "warning"), "errors": plan_problems(event, "error")}
                yield {"kind": event.kind, "plan": plan}
            case LessonsIndexed():
                yield {"kind": event.kind, "done": event.done, "total": event.total}
            case Finished():
                yield {"kind": event.kind, "job": dataclasses.asdict(event.job)}


def plan_problems(event: Planned, severity: str) -> list[dict[str, Any]]:
    """What the survey, and a dry run's reading, found wrong."""
    problems = event.job.errors if severity == "error" else event.job.warnings
    return [dataclasses.asdict(problem) for problem in problems]


ACTIONS: dict[str, Action] = {
    action.__name__: action
    for action in (search, ask, chunks, books, remove, outline, lesson, calibrate, doctor, ingest)
}
LATE = {  # actions whose modules are imported when they are asked for
    "job_commands": ("jobs", "job", "cancel_job", "start_job"),
    "key_commands": ("create_key", "keys", "rotate_key", "revoke_key", "delete_key"),
    "thread_commands": ("chat", "threads", "thread", "export_thread", "delete_thread", "purge_threads"),
}


def action_named(name: str) -> Action:
    """The action of this name."""
    if name in ACTIONS:
        return ACTIONS[name]
    for module, names in LATE.items():
        if name in names:
            action: Action = getattr(import_module(f"lectern.app.{module}"), name)
            return action
    raise BadInput(f"there is no action {name!r}")


def _scope(params: Params) -> Scope:
    given = dict(params["scope"])
    if given.get("proficiency_levels") is not None:
        given["proficiency_levels"] = tuple(given["proficiency_levels"])  # JSON knows no tuples
    return Scope(**given)
