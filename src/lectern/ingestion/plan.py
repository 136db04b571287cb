"""What an ingestion will do: a pure function of the folder and the ledger, computed before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from lectern.domain.books import LessonSource, Problem, Survey
from lectern.domain.chunks import parent_doc_id
from lectern.domain.errors import BookNotFound, SourceError, WrongBook
from lectern.domain.jobs import IngestionRecord, Mode, Plan, Replacement

Records = Mapping[str, IngestionRecord]


def plan_ingestion(survey: Survey, records: Records, mode: Mode) -> Plan:
    """Compare the folder with the ledger, file by file."""
    lessons = {lesson.source_file: lesson for lesson in survey.lessons}
    new = [name for name in lessons if name not in records]
    modified = [name for name in lessons if name in records and records[name].digest != lessons[name].digest]
    unchanged = [name for name in lessons if name in records and records[name].digest == lessons[name].digest]
    deleted = [name for name in records if name not in lessons]
    redo = [*new, *modified] if mode == "incremental" else list(lessons)
    moves = _moves(new, deleted, lessons, records)
    moved_from, moved_to = {old for old, _ in moves}, {name for _, name in moves}
    return Plan(
        mode=mode,
        replacements=_replacements([lessons[name] for name in redo], [*redo, *deleted], records),
        new=tuple(name for name in new if name not in moved_to),
        modified=tuple(modified),
        moved=moves,
        deleted=tuple(name for name in deleted if name not in moved_from),
        unchanged=tuple(unchanged),
    )


def without_done(plan: Plan, records: Records, done: AbstractSet[str]) -> Plan:
    """The plan without the replacements that this run has applied already (`done`: their files), unless a file changed
    since. A run that continues does not read and embed them again, whatever its mode."""

    def is_done(replacement: Replacement) -> bool:
        files = {lesson.source_file for lesson in replacement.lessons}
        only_own = all(record.source_file in files for record in replacement.retired)
        return only_own and all(
            lesson.source_file in done and records[lesson.source_file].digest == lesson.digest
            for lesson in replacement.lessons
        )

    left = tuple(replacement for replacement in plan.replacements if not is_done(replacement))
    return replace(plan, replacements=left)


def refuse_wrong_book(survey: Survey, records: Records, plan: Plan) -> None:
    """Raise if the plan would remove most of a book, because the folder is another book or an empty mount. A request
    with `replace` skips this check."""
    book_id = survey.manifest.book_id
    if not survey.files_discovered:
        raise BookNotFound(
            f"no .md or .mdx file was found for book {book_id!r}; check the path, or what `exclude` leaves out"
        )
    if not records:
        return
    errors = {problem.file: _describe(problem) for problem in survey.problems if problem.severity == "error"}
    if errors and not survey.lessons:
        raise SourceError(
            f"none of the {survey.files_discovered} files can be read, so all {len(records)} lessons indexed as "
            f"{book_id!r} would be removed; {next(iter(errors.values()))}. If they are to go, say --replace"
        )
    hashes = {record.file_hash for record in records.values()}
    shared = any(lesson.source_file in records or lesson.source_file_hash in hashes for lesson in survey.lessons)
    if not shared:
        raise WrongBook(
            f"this folder shares no file with the {len(records)} that are indexed as {book_id!r}: "
            "it looks like another book. Give it its own --book ID, or say --replace"
        )
    if len(plan.deleted) * 2 > len(records):
        broken = [errors[name] for name in plan.deleted if name in errors]
        example = f"{plan.deleted[0]!r}" if not broken else f"{len(broken)} that cannot be read ({broken[0]})"
        raise WrongBook(
            f"{len(plan.deleted)} of the {len(records)} lessons indexed as {book_id!r} would be removed, for instance "
            f"{example}. If that is meant, say --replace"
        )


def _describe(problem: Problem) -> str:
    where = f"{problem.file!r}" if problem.line is None else f"{problem.file!r}, line {problem.line}"
    return f"{where}: {problem.message}"


def _moves(
    new: Iterable[str], deleted: Iterable[str], lessons: Mapping[str, LessonSource], records: Records
) -> tuple[tuple[str, str], ...]:
    deleted_by_hash: dict[str, list[str]] = {}
    for name in deleted:
        deleted_by_hash.setdefault(records[name].file_hash, []).append(name)
    return tuple(
        (deleted_by_hash[lessons[name].source_file_hash].pop(0), name)
        for name in new
        if deleted_by_hash.get(lessons[name].source_file_hash)
    )


def _replacements(lessons: list[LessonSource], retiring: Iterable[str], records: Records) -> tuple[Replacement, ...]:
    """Group new and old lessons: they belong together if they share a file or a place."""
    groups = _Groups()
    for lesson in lessons:
        groups.join(("file", lesson.source_file), ("place", parent_doc_id(lesson.place)))
    retired = [records[name] for name in retiring if name in records]
    for record in retired:
        groups.join(("file", record.source_file), ("place", record.parent_doc_id))
    incoming: dict[object, list[LessonSource]] = {}
    outgoing: dict[object, list[IngestionRecord]] = {}
    for lesson in lessons:
        incoming.setdefault(groups.root(("file", lesson.source_file)), []).append(lesson)
    for record in retired:
        outgoing.setdefault(groups.root(("file", record.source_file)), []).append(record)
    return tuple(
        Replacement(lessons=tuple(incoming.get(root, ())), retired=tuple(outgoing.get(root, ())))
        for root in dict.fromkeys([*incoming, *outgoing])
    )


class _Groups:
    """Which keys belong together (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[object, object] = {}

    def root(self, key: object) -> object:
        above = self._parents.setdefault(key, key)
        while above != self._parents[above]:
            self._parents[above] = self._parents[self._parents[above]]
            above = self._parents[above]
        return above

    def join(self, first: object, second: object) -> None:
        self._parents[self.root(first)] = self.root(second)
