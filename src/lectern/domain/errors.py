"""Every `LecternError`. The class says who can fix it, and gives the status and the exit code.

LecternError
  BadInput            the caller can fix it         422 / exit 2
    KeyUsed             an idempotency key of another request
    UnknownBook         no such book                404 / exit 2
    UnknownLesson       no such lesson or chunk     404 / exit 2
    UnknownFile         no such image of the book   404 / exit 2
    UnknownThread       no such thread of yours     404 / exit 2
    UnknownRun          no such run of yours        404 / exit 2
    UnknownJob          no such job                 404 / exit 2
    UnknownKey          no such key                 404 / exit 2
  SourceError         the author can fix it         422 / exit 2
    BookNotFound        no folder, no lessons
    BadManifest         lectern.toml is wrong
    WrongBook           another folder under this name, or too much would go
  ConfigError         the operator can fix it       409 / exit 2
    IndexMismatch       built by another model or an older schema
    OtherSignals        a calibration by signals of another version
    IndexDamaged        the files of the index do not load   503
    ModelDamaged        the weights are not the ones that were shipped
    InUse               another process owns the data
  Busy                a job or turn is under way    409 / exit 2
    TakenOver           another server goes on with it
  Conflict            what was read has changed     409 / exit 2
  Cancelled           a run was ended on request    409 / exit 2
  JobCancelled        a job was ended on request    409 / exit 2
  JobFailed           a job could not go on         422 / exit 2
  Unauthorised        no key, or not a good one     401 / exit 2
    BadKey              the key itself is missing or wrong
  Forbidden           the key may not do this       403 / exit 2
    WrongOrigin         a publishable key on another page
  TooMany             the limit is reached          429 / exit 2
  Overloaded          too much is under way         503 / exit 3
  StoreUnavailable    the database does not answer  503 / exit 3
    OutOfResources      no disk, memory or descriptors are left
  WorkerLost          the worker process died       503 / exit 3
  Unexpected          a fault of Lectern's own      500 / exit 3
  CommandFailed       what a server said to a command; its exit code is the server's
  ProviderError       waiting may fix it            503 / exit 3
    RateLimited, ProviderTimeout, ProviderRefused, ProviderFaulty
    ToolsUnknown        the model cannot call tools
"""

from __future__ import annotations

import re


class LecternError(Exception):
    """An error for a caller; its text is for a person and says what to do."""

    exit_code = 2
    status = 422
    retryable = False


class BadInput(LecternError):
    """A request that cannot be carried out as it stands."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        self.field = field
        super().__init__(message)


class KeyUsed(BadInput):
    """An idempotency key that was sent before with another request."""

    def __init__(self) -> None:
        super().__init__("this Idempotency-Key was used for another request; take a new one", field="Idempotency-Key")


class UnknownBook(BadInput):
    """A book that is not indexed, or that the caller may not read. The error is the same for both."""

    status = 404

    def __init__(self, book_id: str, known: tuple[str, ...] = ()) -> None:
        self.book_id, self.known = book_id, known
        missing = f"there is no book {book_id!r}; indexed: {', '.join(known)}"
        nothing = "no book is indexed yet; run: lectern ingest PATH"
        super().__init__(missing if known else nothing, field="book_id")


class UnknownLesson(BadInput):
    """A lesson or chunk id that this book does not have."""

    status = 404


class UnknownFile(BadInput):
    """A file that is no image of this book. The error is the same whatever is at that path."""

    status = 404

    def __init__(self) -> None:
        super().__init__("the book has no such image", field="path")


class UnknownThread(BadInput):
    """A conversation that this owner does not have. Another owner's conversation gives the same error."""

    status = 404


class UnknownRun(BadInput):
    """A run that this owner did not begin."""

    status = 404


class UnknownJob(BadInput):
    """A job that does not exist, or that the caller may not see."""

    status = 404


class UnknownKey(BadInput):
    """A key id that does not exist."""

    status = 404


class SourceError(LecternError):
    """The book on disk is wrong; its author can fix it."""


class BookNotFound(SourceError):
    """The folder does not exist, is not a folder, or has no lesson."""


class BadManifest(SourceError):
    """`lectern.toml` cannot be used as it is."""


class WrongBook(SourceError):
    """The folder does not look like the book that the ledger knows under this name."""


class ConfigError(LecternError):
    """Settings, index or weights do not fit together; the operator can fix it."""

    status = 409


class IndexMismatch(ConfigError):
    """The index was built by another embedder, or in an older format."""


class IndexDamaged(ConfigError):
    """The index's files do not load. The book is never treated as empty in this case."""

    status = 503


class ModelDamaged(ConfigError):
    """The local model's files are missing, or are not those that were shipped."""


class InUse(ConfigError):
    """Another process owns this LECTERN_HOME; the embedded index has one owner at a time."""


class Busy(LecternError):
    """A job or turn is in progress that excludes this request."""

    status = 409


class TakenOver(Busy):
    """Another server works on the book now, because this one was not heard of for a while."""


class Conflict(LecternError):
    """The request does not fit the present state."""

    status = 409


class Unauthorised(LecternError):
    """No key where one is needed, or one that is unknown, expired or revoked. The error is the same for all."""

    status = 401


class Forbidden(LecternError):
    """A valid key that lacks the right."""

    status = 403


class TooMany(LecternError):
    """The rate limit is reached; another request is possible in `retry_after` seconds."""

    status = 429
    retryable = True

    def __init__(self, message: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class Overloaded(LecternError):
    """The server has as much work as it accepts."""

    exit_code = 3
    status = 503
    retryable = True


class StoreUnavailable(LecternError):
    """The database does not answer."""

    exit_code = 3
    status = 503
    retryable = True


class OutOfResources(StoreUnavailable):
    """The machine has no disk, memory or file descriptors left. Nothing stored is damaged by this."""


class ProviderError(LecternError):
    """An embedder or a language model failed."""

    exit_code = 3
    status = 503
    retryable = True

    def __init__(self, provider: str, message: str) -> None:
        self.provider = provider
        super().__init__(f"{provider}: {message}")

    def rename(self, provider: str) -> None:
        """Name another provider: a call may not know which endpoint it went to."""
        self.args = (f"{provider}{str(self).removeprefix(self.provider)}",)
        self.provider = provider


class RateLimited(ProviderError):
    """The provider asked us to wait."""

    def __init__(self, provider: str, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(provider, f"asked us to wait {retry_after:g} s; try again then")


class ProviderTimeout(ProviderError):
    """The provider did not answer in time."""


class ProviderRefused(ProviderError):
    """The provider rejects the request itself (key, model name, input); trying again does not help."""

    retryable = False


class ProviderFaulty(ProviderError):
    """The provider answers, but with what cannot be used, or without doing what it says; trying again does not
    help."""

    retryable = False


class JobCancelled(LecternError):
    """A job was cancelled; raised to callers that wait for its result."""

    status = 409


class WorkerLost(LecternError):
    """The worker process died or did not answer."""

    status = 503
    exit_code = 3


class Cancelled(LecternError):
    """A run was cancelled on request, or because the server stopped."""

    status = 409


class Unexpected(LecternError):
    """A fault of Lectern itself. The log has the details, the reader does not."""

    status = 500
    exit_code = 3


class JobFailed(LecternError):
    """A job failed; raised to callers that follow it."""


BAD_KEY_MESSAGE = (
    "a good key is needed, as `Authorization: Bearer KEY` or `X-API-Key: KEY`; "
    "the operator makes one with: lectern keys create"
)


class BadKey(Unauthorised):
    """The key is missing or not valid."""

    def __init__(self, *, key_sent: bool) -> None:
        self.key_sent = key_sent  # it may be a guess
        super().__init__(BAD_KEY_MESSAGE)


class WrongOrigin(Forbidden):
    """A publishable key on a page that it was not made for."""


class OtherSignals(ConfigError):
    """A calibration that was made with other signals than those of this version."""


class ToolsUnknown(ProviderError):
    """The endpoint's model cannot call tools; it is asked again without them."""


class CommandFailed(LecternError):
    """The error that the server reported for a command."""

    def __init__(self, message: str, exit_code: int, *, typed: bool) -> None:
        self.exit_code = exit_code  # the server's, in place of the class's
        self.typed = typed  # about what was typed, not about a file or the server
        super().__init__(message)


def error_code(kind: type[LecternError]) -> str:
    """The name of a kind of error over HTTP: `UnknownBook` is `unknown_book`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
