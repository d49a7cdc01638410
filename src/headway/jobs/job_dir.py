"""A job's working directory: it outlives attempts, and each attempt has it for itself.

A later attempt begins with a copy of what the one before had written. It cannot share it: an
attempt whose worker was paused past its lease may go on writing (trap 6). In its own, older copy it
spoils nothing, and once the newer one is there, its directory is gone.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class JobDir:
    """The working directory of one attempt.

    Attributes:
        root: Of the job; holds one directory for each attempt that has used it.
        attempt: The attempt's number.
    """

    root: Path
    attempt: int

    def open(self) -> Path:
        """The attempt's directory, made on the first call with what earlier attempts left.

        Raises:
            OSError: it cannot be made.
        """
        own = self.root / str(self.attempt)
        if own.is_dir():
            return own
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        earlier = self._earlier()
        partial = self.root / f".{self.attempt}.partial-{os.getpid()}"
        if earlier:
            # Links stay links: to follow one would copy whatever it points to.
            shutil.copytree(self.root / str(earlier[-1]), partial, symlinks=True)
        else:
            partial.mkdir(mode=0o700)
        partial.rename(own)
        for number in earlier:
            shutil.rmtree(self.root / str(number), ignore_errors=True)
        return own

    def _earlier(self) -> list[int]:
        """The attempts before this one that left a directory; an unfinished copy has no number."""
        numbers = (int(path.name) for path in self.root.iterdir() if path.name.isdecimal())
        return sorted(number for number in numbers if number < self.attempt)
