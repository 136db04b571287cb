"""Makes the problems of the ingestion report. Each message says what is wrong and how to mend it."""

from __future__ import annotations

from lectern.domain.books import Problem


class Unreadable(Exception):
    """A file cannot be read; the message says why and how to mend it."""

    def __init__(self, message: str, line: int | None = None) -> None:
        self.message, self.line = message, line
        super().__init__(message)

    def problem(self, file: str) -> Problem:
        """The error in the report for this file."""
        return error(file, self.line, self.message)


def warning(file: str, line: int | None, message: str) -> Problem:
    """A problem that the author should check; the lesson is indexed."""
    return Problem(file=file, line=line, message=message, severity="warning")


def error(file: str, line: int | None, message: str) -> Problem:
    """A problem that keeps the file out of the index."""
    return Problem(file=file, line=line, message=message, severity="error")


def internal_error(file: str, exc: Exception) -> Problem:
    """The error in the report for a file on which the reader itself failed."""
    cause = f"this file could not be read because of a mistake of Lectern's ({type(exc).__name__})"
    return error(file, None, f"{cause}; please report it with the file, and `exclude` the file until it is mended")
