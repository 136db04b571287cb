"""Tells a machine that is short of something (disk, memory, descriptors) from files that are damaged. Engines report
both in the same kind of exception, and the advice for one would be wrong for the other."""

from __future__ import annotations

import errno
import os
import re

RESOURCES = {
    errno.ENOSPC: "the disk is full; free some room, then try again",
    errno.EDQUOT: "the disk quota is used up; free some room, then try again",
    errno.ENOMEM: "there is not enough memory; free some, then try again",
    errno.EMFILE: "this process may open no more files; raise `ulimit -n`, then try again",
    errno.ENFILE: "this machine can open no more files; close some, then try again",
    errno.EROFS: "the disk is read-only; make it writable, then try again",
}
_MESSAGES = {os.strerror(number).lower(): number for number in RESOURCES}
_MESSAGES |= {
    "database or disk is full": errno.ENOSPC,
    "out of memory": errno.ENOMEM,
    "failed to map segment from shared object": errno.ENOMEM,  # a library is loaded when it is first needed
    "bad_alloc": errno.ENOMEM,
    "can't start new thread": errno.ENOMEM,  # of Python; a thread needs room for its stack
    "readonly database": errno.EROFS,
}
_OS_ERROR = re.compile(r"os error (\d+)")


def shortage_of(error: BaseException) -> str | None:
    """What the machine is short of, and what to do, if an error says so; else None."""
    if isinstance(error, MemoryError):
        return RESOURCES[errno.ENOMEM]
    if isinstance(error, OSError) and error.errno in RESOURCES:
        return RESOURCES[error.errno]
    message = str(error).lower()
    numbers = [int(number) for number in _OS_ERROR.findall(message)]
    numbers += [number for words, number in _MESSAGES.items() if words in message]
    return next((RESOURCES[number] for number in numbers if number in RESOURCES), None)
