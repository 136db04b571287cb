"""The neural networks that are shipped with the package. A file is loaded only if its checksum is right; the same bytes
are checked and loaded, so the file cannot change in between. A network runs on one thread."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lectern.domain.errors import LecternError, ModelDamaged, OutOfResources
from lectern.domain.resources import shortage_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WEIGHTS = Path(__file__).parent / "weights"
TOKENIZER, CHECKSUMS = "tokenizer.json", "checksums.json"
WINDOW = 256  # word pieces that a network reads
ERRORS_ONLY = 3  # onnxruntime's log level; its warnings about graphics cards do not concern a reader


def session(folder: Path, name: str) -> Any:  # noqa: ANN401  # onnxruntime ships no types
    """A network, ready to run."""
    import numpy  # noqa: F401, ICN001  # first: the runtime imports it too, but hides why that failed
    import onnxruntime

    network = read_verified(folder, name)
    onnxruntime.disable_telemetry_events()
    onnxruntime.set_default_logger_severity(ERRORS_ONLY)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    try:
        return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # the runtime's errors have no type of their own
        raise _load_error(exc, f"the local model {name!r} cannot be loaded") from exc


@cache
def tokenizer(folder: Path, process: int) -> Tokenizer:  # each process loads its own
    """The tokenizer of a folder, one for each process."""
    from tokenizers import Tokenizer

    result = Tokenizer.from_buffer(read_verified(folder, TOKENIZER))
    result.encode_special_tokens = True  # in a book, "[SEP]" is plain text
    return result


def read_verified(folder: Path, name: str) -> bytes:
    """The content of a file, if it is exactly the file that was shipped."""
    try:
        expected = json.loads((folder / CHECKSUMS).read_bytes())[name]
        content = (folder / name).read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise _load_error(exc, f"the local model in {str(folder)!r} cannot be read") from exc
    if hashlib.sha256(content).hexdigest() != expected:
        raise ModelDamaged(f"{str(folder / name)!r} is not the file that was shipped; install lectern anew")
    return content


def _load_error(exc: Exception, failure: str) -> LecternError:
    """The machine is short of something, or else the files are not those that were shipped."""
    if (shortage := shortage_of(exc)) is not None:
        return OutOfResources(shortage)
    return ModelDamaged(f"{failure} ({exc}); install lectern anew")


def cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine's."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
