"""Maintenance over HTTP, for keys with the right `admin`: fit the confidence to a book, and compare the index with the
ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from fastapi import APIRouter

from lectern.api.deps import AdminCaller, LecternDep
from lectern.confidence.calibration import LabelledQuestion
from lectern.domain.errors import Forbidden
from lectern.schemas.common import problems
from lectern.schemas.maintenance import (
    CalibrationReportOut,
    CalibrationRequest,
    DoctorRequest,
    FindingOut,
    without_paths,
)

router = APIRouter(tags=["operations"], responses=problems(401, 403, 408, 413, 422, 429, 503))


@router.post("/books/{book_id}/calibrations", operation_id="calibrateBook", responses=problems(404, 409))
async def calibrate(
    book_id: str, lectern: LecternDep, caller: AdminCaller, body: CalibrationRequest | None = None
) -> CalibrationReportOut:
    """Fit the confidence to a book, from labelled questions or from the book itself; stored where it does better on
    questions that were held out."""
    book = await lectern.app.library.book_id(book_id, caller.books)
    labelled = body.questions if body is not None else []
    questions = [LabelledQuestion(text=question.text, answerable=question.answerable) for question in labelled]
    report = await lectern.calibrate(book, questions)
    answer = CalibrationReportOut.model_validate(report, from_attributes=True)
    return answer.model_copy(update={"stored": Path(report.stored).name if report.stored else None})


@router.post("/doctor", operation_id="examineIndex", responses=problems(409))
async def doctor(lectern: LecternDep, caller: AdminCaller, body: DoctorRequest | None = None) -> list[FindingOut]:
    """Compare the index with what was ingested, in every book; with `mend`, put right what disagrees. Then try the
    language model, if there is one, with three short questions. Needs a key that is not limited to some books."""
    if caller.books is not None:
        raise Forbidden("the doctor looks at every book; ask the operator for a key without a list of books")
    sources = [entry.source for entry in await lectern.books()]
    names = {str(lectern.app.home.path): "LECTERN_HOME", **await asyncio.to_thread(_source_names, sources)}
    findings = [finding async for finding in lectern.doctor(mend=body is not None and body.mend)]
    return [
        FindingOut(
            kind=finding.kind,
            book_id=finding.book_id,
            detail=without_paths(finding.detail, names),
            mended=finding.mended,
            severity=finding.severity,
        )
        for finding in findings
    ]


def _source_names(sources: Iterable[str]) -> dict[str, str]:
    """The name for each folder of a book, also for the one that it leads to if it has become a link."""
    return {path: "PATH" for source in sources for path in (source, str(Path(source).resolve()))}
