"""Room on the disk for the embedded index. The engine maps its files into memory, and most of a new file is a hole that
takes room only when it is written to. If the disk is full then, the kernel ends the process (SIGBUS): no error can be
caught. So there must be room for all holes, and some more, before the engine writes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from lectern.domain.errors import OutOfResources

MIB = 1024 * 1024
MIN_FREE_MIB = 256  # the default of LECTERN_MIN_FREE_MIB; a batch writes a few MiB, new files are up to 32 MiB each
BLOCK = 512  # bytes; the unit of st_blocks, whatever the file system
_LOAD = "import qdrant_edge, sys; qdrant_edge.EdgeShard.load(sys.argv[1]).close()"


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """The room that an index folder needs before anything is written below it."""

    folder: Path
    min_free: int = MIN_FREE_MIB * MIB  # bytes besides the holes

    def check(self) -> None:
        """Raise if there is too little room for a batch."""
        free, holes = self._free(), self._holes()
        if free is not None and free < self.min_free + holes:
            needed = (self.min_free + holes) // MIB
            raise OutOfResources(
                f"the disk of the index has {free // MIB} MiB left, and {needed} MiB are needed before more is "
                "written (LECTERN_MIN_FREE_MIB); what is indexed stays as it is. Free some room, then try again"
            )

    def check_opening(self, path: Path) -> None:
        """Raise if an index cannot be opened for want of room. If there is little, another process tries first."""
        free = self._free()
        if free is None or free >= self.min_free + self._holes():
            return
        command = [sys.executable, "-c", _LOAD, str(path)]
        trial = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # this interpreter
        if trial.returncode < 0:  # ended by a signal
            raise OutOfResources(
                f"the disk of the index has only {free // MIB} MiB left, too little to open it; the index itself is "
                "as it was. Free some room, then try again"
            )

    def _free(self) -> int | None:
        """Bytes that this user may still write; None where that cannot be told."""
        existing = next((path for path in (self.folder, *self.folder.parents) if path.exists()), None)
        if existing is None or not hasattr(os, "statvfs"):
            return None
        status = os.statvfs(existing)
        return status.f_bavail * status.f_frsize

    def _holes(self) -> int:
        """Bytes of the files that have no place on the disk yet."""
        holes = 0
        for root, _, files in os.walk(self.folder):
            for name in files:
                try:
                    status = Path(root, name).stat()
                except FileNotFoundError:  # the engine may delete its own files
                    continue
                holes += max(0, status.st_size - status.st_blocks * BLOCK)
        return holes
