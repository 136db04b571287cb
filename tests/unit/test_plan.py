"""The plan: what an ingestion will do, file by file, before anything is touched."""

from dataclasses import replace

import pytest

from lectern.domain.books import Problem
from lectern.domain.chunks import Change
from lectern.domain.errors import BookNotFound, SourceError, WrongBook
from lectern.domain.jobs import Intent
from lectern.ingestion.plan import plan_ingestion, refuse_wrong_book
from lectern.ingestion.report import JobProgress
from tests.making import place, record, source, surveyed


def test_new_modified_deleted_and_unchanged_files_are_told_apart() -> None:
    """Each file is in exactly one list."""
    same, old, removed_source = source("same.md", 1), source("edited.md", 2, "old"), source("gone.md", 3)
    edited, fresh = source("edited.md", 2, "new"), source("fresh.md", 4, "fresh")
    records = {lesson.source_file: record(lesson) for lesson in (same, old, removed_source)}

    plan = plan_ingestion(surveyed(same, edited, fresh), records, "incremental")

    assert (plan.new, plan.modified, plan.deleted, plan.unchanged) == (
        ("fresh.md",),
        ("edited.md",),
        ("gone.md",),
        ("same.md",),
    )


def test_an_unchanged_book_needs_nothing() -> None:
    """Incremental leaves unchanged files alone; full and recreate take every file again."""
    lesson = source("a.md")
    records = {"a.md": record(lesson)}

    assert plan_ingestion(surveyed(lesson), records, "incremental").replacements == ()
    assert len(plan_ingestion(surveyed(lesson), records, "full").replacements) == 1
    assert len(plan_ingestion(surveyed(lesson), records, "recreate").replacements) == 1


def test_a_renamed_file_replaces_its_old_name_in_one_step() -> None:
    """A lesson that only changed its file name keeps its place, so old and new change hands together."""
    old, new = source("a.md", 1, "same"), source("b.md", 1, "same")

    plan = plan_ingestion(surveyed(new), {"a.md": record(old)}, "incremental")

    assert (plan.moved, plan.new, plan.deleted) == ((("a.md", "b.md"),), (), ())
    [change] = plan.replacements
    assert [lesson.source_file for lesson in change.lessons] == ["b.md"]
    assert [retired.source_file for retired in change.retired] == ["a.md"]


def test_lessons_that_trade_places_change_hands_together() -> None:
    """Two files that swap places share ids while they change: one replacement, so nobody sees one of them twice."""
    first_source, two = source("a.md", 1, "A"), source("b.md", 2, "B")
    swapped_one, swapped_two = source("a.md", 2, "A"), source("b.md", 1, "B")
    records = {"a.md": record(first_source), "b.md": record(two)}

    plan = plan_ingestion(surveyed(swapped_one, swapped_two), records, "incremental")

    [change] = plan.replacements
    assert {lesson.source_file for lesson in change.lessons} == {"a.md", "b.md"}


def test_lessons_that_do_not_touch_are_replaced_one_by_one() -> None:
    """Edits in two lessons are two replacements: readers wait for neither."""
    records = {name: record(source(name, n, "old")) for n, name in enumerate(("a.md", "b.md"))}

    plan = plan_ingestion(surveyed(source("a.md", 0, "x"), source("b.md", 1, "y")), records, "incremental")

    assert len(plan.replacements) == 2


def test_another_books_folder_is_refused() -> None:
    """A folder that shares no path and no content with the indexed book stops before anything is touched."""
    records = {"a.md": record(source("a.md"))}
    book_survey = surveyed(source("z.md", 9, "other", place(lesson=9)))

    with pytest.raises(WrongBook, match="--replace"):
        refuse_wrong_book(book_survey, records, plan_ingestion(book_survey, records, "incremental"))


def test_losing_more_than_half_of_the_lessons_is_refused() -> None:
    """Two of three gone is a mistake unless said otherwise; one of three is an edit."""
    lessons = [source(f"{n}.md", n, str(n)) for n in range(3)]
    records = {lesson.source_file: record(lesson) for lesson in lessons}
    one_left, two_left = surveyed(lessons[0]), surveyed(*lessons[:2])

    with pytest.raises(WrongBook, match="2 of the 3"):
        refuse_wrong_book(one_left, records, plan_ingestion(one_left, records, "incremental"))
    refuse_wrong_book(two_left, records, plan_ingestion(two_left, records, "incremental"))


def test_an_empty_folder_is_refused() -> None:
    """An empty mount never empties a book."""
    book_survey = surveyed()

    with pytest.raises(BookNotFound):
        refuse_wrong_book(book_survey, {}, plan_ingestion(book_survey, {}, "incremental"))


UNREADABLE = [
    Problem(file="x.md", line=None, message="this file and 'y.md' both stand at one place", severity="warning"),
    Problem(file="a.md", line=1, message="the file is UTF-16; save it as UTF-8", severity="error"),
    Problem(file="b.md", line=None, message="the file is empty; write the lesson", severity="error"),
]


def test_a_book_that_became_unreadable_is_not_called_another_book() -> None:
    """Where no file can be read any more, the first one and why are said, and how many there are."""
    records = {name: record(source(name, n)) for n, name in enumerate(("a.md", "b.md"))}
    book_survey = replace(surveyed(), problems=tuple(UNREADABLE), files_discovered=2)

    with pytest.raises(SourceError) as caught:
        refuse_wrong_book(book_survey, records, plan_ingestion(book_survey, records, "incremental"))

    message = str(caught.value)
    assert "another book" not in message
    assert "none of the 2 files" in message
    assert "'a.md', line 1: the file is UTF-16; save it as UTF-8" in message
    assert "--replace" in message


def test_lessons_that_go_because_they_cannot_be_read_say_why() -> None:
    """When most of a book would go, the example says what is wrong with it."""
    lessons = [source(f"{name}.md", n, name) for n, name in enumerate("abc")]
    records = {lesson.source_file: record(lesson) for lesson in lessons}
    book_survey = replace(surveyed(lessons[2]), problems=tuple(UNREADABLE), files_discovered=3)

    with pytest.raises(WrongBook, match=r"2 of the 3 .*'a\.md'.*UTF-16"):
        refuse_wrong_book(book_survey, records, plan_ingestion(book_survey, records, "incremental"))


def test_a_file_that_breaks_between_two_rounds_is_counted_once() -> None:
    """Processed, skipped and failed files add up to those discovered, whatever happens to one meanwhile."""
    lessons = [source(f"{name}.md", n, name) for n, name in enumerate("abc")]
    progress = JobProgress(job_id=1, book_id="book", mode="incremental")
    first = surveyed(*lessons)
    records = {"c.md": record(lessons[2])}
    progress.begin(first, records, plan_ingestion(first, records, "incremental"))
    for lesson in lessons[:2]:
        empty_change = Change(put=(), drop=(), language="en")
        progress.count_change(Intent(change=empty_change, records=(record(lesson),), retired=()))
        records[lesson.source_file] = record(lesson)
    second = replace(surveyed(*lessons[1:]), problems=tuple(UNREADABLE[:2]), files_discovered=3)
    progress.begin(second, records, plan_ingestion(second, records, "incremental"))

    job = progress.job("completed")

    assert (job.files_processed, job.files_skipped, job.files_failed) == (1, 1, 1)
    assert job.files_discovered == 3

    progress.problems.append(UNREADABLE[2])  # it would not hold still in the last round
    job = progress.job("completed")

    assert (job.files_processed, job.files_skipped, job.files_failed) == (0, 1, 2)
