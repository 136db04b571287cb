"""Lines of the report. Every one says what is wrong and how to mend it, so that nobody has to ask."""

from __future__ import annotations

from lectern.domain.books import Problem


class Unreadable(Exception):
    """A file that cannot become a lesson; its text says why and how to mend it."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.message, self.line = message, line
        super().__init__(message)

    def problem(self, file: str) -> Problem:
        """The report's line for this file."""
        return error(file, self.line, self.message)


def warning(file: str, line: int | None, message: str) -> Problem:
    """Something the author should look at; the lesson is indexed."""
    return Problem(file=file, line=line, message=message, severity="warning")


def error(file: str, line: int | None, message: str) -> Problem:
    """Something that keeps the file out of the index."""
    return Problem(file=file, line=line, message=message, severity="error")


def unforeseen(file: str, exc: Exception) -> Problem:
    """The report's line for a file that broke the reader itself."""
    what = f"this file could not be read because of a mistake of Lectern's ({type(exc).__name__})"
    return error(file, None, f"{what}; please report it with the file, and `exclude` the file until it is mended")
