"""An answer from the outline, cited: each lesson that it names is cited by its first chunk."""

from __future__ import annotations

from dataclasses import dataclass

from lectern.answering.citations import citation
from lectern.answering.desk import TurnDesk
from lectern.answering.structure import about_structure, structure_lines
from lectern.domain.filters import ChunkFilter
from lectern.domain.replies import Citation, Statement


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredAnswer:
    """What the outline says."""

    text: str
    citations: tuple[Citation, ...]
    statements: tuple[Statement, ...]


async def structured_answer(question: str, where: ChunkFilter, desk: TurnDesk) -> StructuredAnswer | None:
    """The answer to a question about the structure, or None."""
    if not about_structure(question):
        return None
    lines = structure_lines(question, await desk.library.outline(where.book_id))
    numbers: dict[str, int] = {}
    citations: list[Citation] = []
    statements: list[Statement] = []
    for line in lines:
        if line.lesson.parent_doc_id not in numbers:
            hit = await desk.first_of(line.lesson.parent_doc_id)
            if hit is None:
                continue  # the reader's scope does not show this lesson
            numbers[line.lesson.parent_doc_id] = len(numbers) + 1
            citations.append(citation(len(numbers), hit, ""))
        number = numbers[line.lesson.parent_doc_id]
        text = f"{line.text} [{number}]"
        statements.append(Statement(text=text, citations=(number,), verdict="supported", support=1.0))
    if not statements:
        return None
    text = "\n".join(one.text for one in statements)
    return StructuredAnswer(text=text, citations=tuple(citations), statements=tuple(statements))
