"""Where the embedded engine's failures stop. It raises bare `Exception` for whatever goes wrong inside, and panics
(which are no `Exception` at all) on files it cannot make sense of; above this line both are a damaged index, with
advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lectern.domain.errors import IndexDamaged

PANIC = "PanicException"  # pyo3's, which cannot be imported by name


@contextmanager
def sound(collection: str) -> Iterator[None]:
    """Turn a failure inside the engine into one that says what to do; mistakes in calling it stay what they are."""
    try:
        yield
    except BaseException as exc:
        if type(exc) is Exception or type(exc).__name__ == PANIC:
            raise IndexDamaged(
                f"the index {collection!r} cannot be read ({exc}). Remove its folder in LECTERN_HOME/index and run: "
                "lectern doctor --mend"
            ) from exc
        raise
