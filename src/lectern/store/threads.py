"""Conversations in the SQL database. A turn is stored in one transaction. The thread's row is locked first, so `seq`
counts commits and does not depend on clocks. What a caller reads or changes is within the owner: another owner's id is
unknown.

Statements that every turn needs are built once, because building one takes longer than running it on SQLite.

Archiving moves rows between two tables of the same form and deletes nothing.

Cursors: the moment and number of the last row, as opaque text.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Delete,
    Insert,
    Row,
    Select,
    Subquery,
    Table,
    bindparam,
    delete,
    exists,
    insert,
    literal,
    or_,
    select,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from lectern.domain.errors import BadInput, Conflict, UnknownThread
from lectern.domain.failpoints import reached
from lectern.domain.replies import Exchange
from lectern.domain.threads import (
    LIVE_MESSAGES,
    Beginning,
    Feedback,
    Json,
    Message,
    Thread,
    ThreadEdit,
    ThreadHead,
    ThreadPage,
    Turn,
    check_text,
    query_words,
    without_doubtful,
)
from lectern.store import turn_bodies
from lectern.store.column_types import Moment
from lectern.store.database import reading, transaction
from lectern.store.keys import belongs, refuse_revoked
from lectern.store.leases import Leases
from lectern.store.tables import (
    archived_messages,
    archived_turns,
    leases,
    messages,
    threads,
    turn_feedback,
    turn_log,
    turns,
)
from lectern.store.turn_log import settle

Move = tuple[Table, Table, str]  # from, to, and the column that orders the rows
_PLACE = re.compile(r"(\d{4}-\d\d-\d\dT[\d:.]{8,15}Z) (\d{1,18})")  # forms that both databases can compare
# Built once, because every turn needs them.
_INSERT_THREAD, _INSERT_MESSAGES, _INSERT_TURN = insert(threads), insert(messages), insert(turns)
_TURN_COLUMNS = ("updated_at", "turn_count", "last_seq", "filters", "topic_summary")
_UPDATE_THREAD = (
    update(threads)
    .where(threads.c.number == bindparam("of_number"))
    .values(archived=0, version=threads.c.version + 1, **{name: bindparam(name) for name in _TURN_COLUMNS})
)


async def row_of(connection: AsyncConnection, owner: str, thread_id: str, *, lock: bool = False) -> Row[Any] | None:
    """A thread's row, if this owner has it; locked until the transaction ends, if it is to be changed."""
    query = _LOCKED_THREAD if lock else _THREAD
    return (await connection.execute(query, {"of_owner": owner, "of_thread": thread_id})).first()


async def existing_row(connection: AsyncConnection, owner: str, thread_id: str, *, lock: bool = False) -> Row[Any]:
    """The row of a thread that must exist; an unknown thread is an error."""
    row = await row_of(connection, owner, thread_id, lock=lock)
    if row is None:
        raise UnknownThread(f"there is no thread {thread_id!r}", field="thread_id")
    return row


async def messages_from(connection: AsyncConnection, number: int, first: int) -> dict[int, Message]:
    """The messages of a thread from a turn on, by their `seq`."""
    rows = await connection.execute(_MESSAGES_QUERY, {"of_thread": number, "from_seq": 2 * first - 1})
    return {row.seq: turn_bodies.message(row) for row in rows}


async def turn_rows(connection: AsyncConnection, number: int, span: tuple[int, int]) -> Sequence[Row[Any]]:
    """The turns of a thread from one number to another, in order."""
    parameters = {"of_thread": number, "first": span[0], "last": span[1]}
    rows: Sequence[Row[Any]] = (await connection.execute(_TURNS_QUERY, parameters)).all()
    return rows


def turns_of(seqs: Sequence[int]) -> tuple[int, int]:
    """The first and last turn that these messages belong to; each turn has two messages."""
    return ((seqs[0] + 1) // 2, (seqs[-1] + 1) // 2) if seqs else (1, 0)


def with_archive(live: Table, archived: Table) -> Subquery:
    """A table and its archive together."""
    parts: list[Select[Any]] = [select(live), select(archived)]
    return union_all(*parts).subquery()


def _messages_query() -> Select[Any]:
    whole = with_archive(messages, archived_messages)
    in_span = (whole.c.thread == bindparam("of_thread")) & (whole.c.seq >= bindparam("from_seq"))
    return select(whole).where(in_span).order_by(whole.c.seq)


def _turns_query() -> Select[Any]:
    whole = with_archive(turns, archived_turns)
    in_span = whole.c.number.between(bindparam("first"), bindparam("last"))
    return select(whole).where(whole.c.thread == bindparam("of_thread"), in_span).order_by(whole.c.number)


def is_thread(
    owner: str | BindParameter[str], thread_id: str | BindParameter[str]
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """A condition on threads: this thread of this owner."""
    return threads.c.owner == owner, threads.c.thread_id == thread_id


def head_of(row: Row[Any]) -> ThreadHead:
    """A thread without its messages."""
    return ThreadHead(
        thread_id=row.thread_id,
        book_id=row.book_id,
        title=row.title,
        topic_summary=row.topic_summary,
        metadata=row.metadata,
        filters=turn_bodies.read_object(row.filters),
        created_at=row.created_at,
        updated_at=row.updated_at,
        turn_count=row.turn_count,
        archived=bool(row.archived),
        version=row.version,
    )


def _has_word(word: str) -> ColumnElement[bool]:
    """A condition on threads: the title or a question contains a word, whatever the case of its letters. SQLite, and
    PostgreSQL in some locales, know the case of ASCII letters only, so the usual spellings are all looked for."""
    spellings = {word, word.lower(), word.upper(), word.capitalize(), word.casefold()}

    def in_text(column: Column[str]) -> ColumnElement[bool]:
        return or_(*(column.icontains(spelling, autoescape=True) for spelling in sorted(spellings)))

    questions = [
        exists().where(table.c.thread == threads.c.number, table.c.role == "user", in_text(table.c.content))
        for table in (messages, archived_messages)
    ]
    return or_(in_text(threads.c.title), *questions)


_THREAD = select(threads).where(*is_thread(bindparam("of_owner"), bindparam("of_thread")))
_LOCKED_THREAD = _THREAD.with_for_update()
_MESSAGES_QUERY, _TURNS_QUERY = _messages_query(), _turns_query()


async def archive(connection: AsyncConnection, thread: int, upto: int | None) -> None:
    """Archive messages up to a `seq`, or all of them, and the turns that have no live message left."""
    if upto is not None and upto <= 0:
        return
    await _move(connection, (messages, archived_messages, "seq"), thread, upto=upto)
    reached("threads.archiving")
    await _move(connection, (turns, archived_turns, "number"), thread, upto=None if upto is None else upto // 2)


async def unarchive(connection: AsyncConnection, thread: int, after: int) -> None:
    """Move the messages after a `seq`, and their turns, from the archive to the live tables."""
    await _move(connection, (archived_messages, messages, "seq"), thread, after=after)
    await _move(connection, (archived_turns, turns, "number"), thread, after=after // 2)


async def _move(
    connection: AsyncConnection, move: Move, thread: int, *, upto: int | None = None, after: int | None = None
) -> None:
    bounds = {name: value for name, value in (("upto", upto), ("after", after)) if value is not None}
    for statement in _move_statements(move, frozenset(bounds)):
        await connection.execute(statement, {"of_thread": thread, **bounds})


@cache
def _move_statements(move: Move, bounds: frozenset[str]) -> tuple[Insert, Delete]:
    """Statements that move rows, built once: from its 26th turn on, every turn of a conversation moves an older one."""
    source, target, place = move
    in_range = source.c.thread == bindparam("of_thread")
    if "upto" in bounds:
        in_range &= source.c[place] <= bindparam("upto")
    if "after" in bounds:
        in_range &= source.c[place] > bindparam("after")
    names = [column.name for column in source.columns]
    return insert(target).from_select(names, select(source).where(in_range)), delete(source).where(in_range)


def cursor_of(moment: str, number: int) -> str:
    """The cursor of a row."""
    return base64.urlsafe_b64encode(f"{moment} {number}".encode()).decode()


def place_of(cursor: str) -> tuple[str, int]:
    """The moment and number in a cursor."""
    try:
        match = _PLACE.fullmatch(base64.urlsafe_b64decode(cursor.encode()).decode())
    except (binascii.Error, ValueError):
        match = None
    if match is None:
        raise BadInput("cursor is not one that was given out; begin without it", field="cursor")
    return match[1], int(match[2])


class SqlThreads:
    """The thread store."""

    def __init__(self, engine: AsyncEngine, leases: Leases) -> None:
        self._engine = engine
        self._leases = leases

    async def head(self, owner: str, thread_id: str) -> ThreadHead | None:
        """A thread without its messages, if this owner has it."""
        async with reading(self._engine) as connection:
            row = await row_of(connection, owner, thread_id)
        return head_of(row) if row else None

    async def heads(
        self, owner: str, *, limit: int, cursor: str | None = None, query: str = "", book_id: str | None = None
    ) -> ThreadPage:
        """The owner's threads, the most recently used first; with a `query`, those that have each of its words in the
        title or in a question."""
        found = select(threads).where(threads.c.owner == owner, *map(_has_word, query_words(query)))
        if book_id is not None:
            check_text(book_id, "book_id")
            found = found.where(threads.c.book_id == book_id)
        if cursor is not None:
            moment, number = place_of(cursor)
            place = tuple_(literal(moment, Moment()), number)
            found = found.where(tuple_(threads.c.updated_at, threads.c.number) < place)
        found = found.order_by(threads.c.updated_at.desc(), threads.c.number.desc()).limit(limit + 1)
        async with reading(self._engine) as connection:
            rows = (await connection.execute(found)).all()
        more = len(rows) > limit
        return ThreadPage(
            heads=tuple(head_of(row) for row in rows[:limit]),
            cursor=cursor_of(rows[limit - 1].updated_at, rows[limit - 1].number) if more else None,
        )

    async def thread(
        self, owner: str, thread_id: str, *, before: int | None = None, limit: int | None = LIVE_MESSAGES
    ) -> Thread:
        """A thread with its last messages, or those before a `seq`; without a limit, all of them."""
        async with reading(self._engine) as connection:
            row = await existing_row(connection, owner, thread_id)
            whole = with_archive(messages, archived_messages)
            query = select(whole).where(whole.c.thread == row.number).order_by(whole.c.seq.desc())
            if before is not None:
                query = query.where(whole.c.seq < before)
            message_rows = (await connection.execute(query.limit(limit))).all()[::-1]
            rows_of_turns = await turn_rows(connection, row.number, turns_of([message.seq for message in message_rows]))
        page = tuple(turn_bodies.message(message) for message in message_rows)
        look_ups = tuple(look_up for turn in rows_of_turns for look_up in turn_bodies.look_ups(turn.look_ups))
        earlier = page[0].seq if page and page[0].seq > 1 else None
        return Thread(head=head_of(row), messages=page, retrieval_history=look_ups, earlier=earlier)

    async def recent(self, owner: str, thread_id: str, max_turns: int) -> tuple[Exchange, ...]:
        """The answers of the last `max_turns` turns; refusals, doubtful claims and damaged rows are left out."""
        async with reading(self._engine) as connection:
            row = await row_of(connection, owner, thread_id)
            if row is None:
                return ()
            first = max(1, row.turn_count - max_turns + 1)
            messages_by_seq = await messages_from(connection, row.number, first)
            rows = await turn_rows(connection, row.number, (first, row.turn_count))
        return tuple(
            Exchange(
                question=messages_by_seq[2 * turn.number - 1].content,
                answer=without_doubtful(messages_by_seq[2 * turn.number].content, turn_bodies.read_object(turn.reply)),
                standalone=turn.standalone,
                tool_uses=turn_bodies.tool_uses(turn.transcript),
            )
            for turn in rows
            if not turn.refused and {2 * turn.number - 1, 2 * turn.number} <= messages_by_seq.keys()
        )

    async def turns(self, owner: str, thread_id: str) -> tuple[Turn, ...]:
        """Every turn of a thread, in order."""
        async with reading(self._engine) as connection:
            row = await existing_row(connection, owner, thread_id)
            messages_by_seq = await messages_from(connection, row.number, 1)
            rows = await turn_rows(connection, row.number, (1, row.turn_count))
            ratings = await connection.execute(select(turn_feedback).where(turn_feedback.c.thread == row.number))
            feedback_by_turn = {rating.turn: turn_bodies.feedback(rating) for rating in ratings}
        whole = [turn for turn in rows if {2 * turn.number - 1, 2 * turn.number} <= messages_by_seq.keys()]
        return tuple(turn_bodies.turn(turn, messages_by_seq, feedback_by_turn.get(turn.number)) for turn in whole)

    async def reply(self, owner: str, run_id: str) -> Json | None:
        """The reply of a run, as it was shown."""
        whole = with_archive(turns, archived_turns)
        query = (
            select(whole.c.reply)
            .join_from(whole, threads, whole.c.thread == threads.c.number)
            .where(whole.c.run_id == run_id, threads.c.owner == owner)
        )
        async with reading(self._engine) as connection:
            body = (await connection.execute(query)).scalar()
        return None if body is None else turn_bodies.read_object(body)

    async def append(  # noqa: PLR0913  # what a turn is made of
        self,
        owner: str,
        thread_id: str,
        turn: Turn,
        *,
        thread_exists: bool,
        beginning: Beginning,
        filters: Json,
        summary: str | None,
    ) -> None:
        """Store a complete turn. If its thread was deleted in the meantime, it is not stored."""
        async with transaction(self._engine) as connection:
            await self._leases.confirm(connection, owner, thread_id, turn.run_id)
            await refuse_revoked(connection, owner)
            if thread_exists:
                number, count, seq = await _continue(connection, (owner, thread_id), turn, filters, summary)
            else:
                number, count, seq = await _begin(connection, (owner, thread_id), turn, beginning, filters), 0, 0
            reached("threads.begun")
            await connection.execute(_INSERT_MESSAGES, turn_bodies.message_rows(number, seq, turn))
            reached("threads.said")
            await connection.execute(_INSERT_TURN, turn_bodies.turn_row(number, count + 1, turn))
            await archive(connection, number, seq + 2 - LIVE_MESSAGES)
            await settle(connection, turn.run_id)
            reached("threads.before-commit")
        reached("threads.kept")

    async def edit(self, owner: str, thread_id: str, change: ThreadEdit) -> ThreadHead:
        """Change a thread's title or metadata; if it was changed since it was read, that is a conflict."""
        values: dict[str, Any] = {"version": threads.c.version + 1}
        if change.title is not None:
            values["title"] = change.title.strip()
        if change.metadata is not None:
            values["metadata"] = change.metadata
        async with transaction(self._engine) as connection:
            row = await existing_row(connection, owner, thread_id, lock=True)
            if change.version is not None and change.version != row.version:
                raise Conflict(f"the thread is at version {row.version} by now; read it again, then change it")
            await connection.execute(update(threads).where(threads.c.number == row.number).values(**values))
            row = await existing_row(connection, owner, thread_id)
        return head_of(row)

    async def summarise(self, owner: str, thread_id: str, summary: str) -> None:
        """Store a summary by a language model; later turns keep it until the model writes another."""
        values = {"topic_summary": summary, "summary_by_model": 1}
        async with transaction(self._engine) as connection:
            await connection.execute(update(threads).where(*is_thread(owner, thread_id)).values(**values))

    async def rate(self, owner: str, thread_id: str, number: int, feedback: Feedback | None) -> None:
        """Store the feedback on a turn instead of an earlier one; None takes it back."""
        async with transaction(self._engine) as connection:
            await refuse_revoked(connection, owner)
            row = await existing_row(connection, owner, thread_id, lock=True)
            if not 1 <= number <= row.turn_count:
                raise BadInput(f"the thread has turns 1 to {row.turn_count}, and no turn {number}", field="turn")
            of_turn = (turn_feedback.c.thread == row.number) & (turn_feedback.c.turn == number)
            await connection.execute(delete(turn_feedback).where(of_turn))
            if feedback is not None:
                await connection.execute(insert(turn_feedback), turn_bodies.feedback_row(row.number, number, feedback))

    async def delete(self, owner: str, thread_id: str) -> None:
        """Delete a thread and everything that belongs to it."""
        async with transaction(self._engine) as connection:
            row = await existing_row(connection, owner, thread_id, lock=True)
            await _remove(connection, [row.number])
            await connection.execute(
                delete(turn_log).where(turn_log.c.owner == owner, turn_log.c.thread_id == thread_id)
            )

    async def forget(self, owner: str) -> int:
        """Delete every thread and run of an owner and of its readers; returns how many threads were deleted."""
        async with transaction(self._engine) as connection:
            query = select(threads.c.number).where(belongs(threads.c.owner, owner)).with_for_update()
            numbers = list((await connection.execute(query)).scalars())
            await _remove(connection, numbers)
            for table in (turn_log, leases):
                await connection.execute(delete(table).where(belongs(table.c.owner, owner)))
        return len(numbers)

    async def purge(self, before: str) -> int:
        """Delete threads of every owner that were last used before a moment; returns how many."""
        async with transaction(self._engine) as connection:
            query = select(threads.c.number).where(threads.c.updated_at < before).with_for_update()
            numbers = list((await connection.execute(query)).scalars())
            await _remove(connection, numbers)
            await connection.execute(delete(turn_log).where(turn_log.c.begun_at < before))
        return len(numbers)

    async def archive_idle(self, before: str) -> int:
        """Move threads that were last used before a moment to the archive; returns how many."""
        query = select(threads.c.number).where(threads.c.archived == 0, threads.c.updated_at < before)
        async with reading(self._engine) as connection:
            numbers = (await connection.execute(query)).scalars().all()
        archived = 0
        for number in numbers:
            async with transaction(self._engine) as connection:
                still = (threads.c.number == number) & (threads.c.archived == 0) & (threads.c.updated_at < before)
                if (await connection.execute(update(threads).where(still).values(archived=1))).rowcount:
                    await archive(connection, number, None)
                    archived += 1
        return archived


async def _begin(
    connection: AsyncConnection, name: tuple[str, str], turn: Turn, beginning: Beginning, filters: Json
) -> int:
    """Insert a thread with its first turn; under the lease no other process can have done so."""
    values = {
        "owner": name[0],
        "thread_id": name[1],
        "book_id": beginning.book_id,
        "title": beginning.title,
        "metadata": beginning.metadata,
        "filters": json.dumps(dict(filters)),
        "created_at": turn.asked_at,
        "updated_at": turn.replied_at,
        "turn_count": 1,
        "last_seq": 2,
        "archived": 0,
        "version": 1,
    }
    result = await connection.execute(_INSERT_THREAD, values)
    return int(result.inserted_primary_key[0])  # type: ignore[index]  # an insert of one row has one


async def _continue(
    connection: AsyncConnection, name: tuple[str, str], turn: Turn, filters: Json, summary: str | None
) -> tuple[int, int, int]:
    """Add a turn to a thread; returns its number, the thread's turns and the last `seq` before this one."""
    row = await row_of(connection, *name, lock=True)
    if row is None:
        raise Conflict("the conversation was deleted while the answer was being made; nothing was kept")
    if row.archived:
        await unarchive(connection, row.number, row.last_seq - LIVE_MESSAGES)
    values = {
        "of_number": row.number,
        "updated_at": turn.replied_at,
        "turn_count": row.turn_count + 1,
        "last_seq": row.last_seq + 2,
        "filters": json.dumps(dict(filters)),
        "topic_summary": row.topic_summary if row.summary_by_model else summary or row.topic_summary,
    }
    await connection.execute(_UPDATE_THREAD, values)
    return row.number, row.turn_count, row.last_seq


async def _remove(connection: AsyncConnection, numbers: Sequence[int]) -> None:
    for start in range(0, len(numbers), 500):  # SQLite limits the variables of one statement
        batch = numbers[start : start + 500]
        for table in (turn_feedback, messages, archived_messages, turns, archived_turns):
            await connection.execute(delete(table).where(table.c.thread.in_(batch)))
        await connection.execute(delete(threads).where(threads.c.number.in_(batch)))
