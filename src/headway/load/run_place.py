"""The place of a run: made for it, and taken away again when nothing was recorded there."""

from __future__ import annotations

from pathlib import Path

from headway.core.errors import ConfigError
from headway.load.inputs.row_file import PREPARED_FILES
from headway.records.run_dir import EVENTS_FILE, RECORDS_FILE, RUN_FILE


class RunPlace:
    """The directory of one run, which may have been there before.

    Args:
        path: Where it is, or will be.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._made: list[Path] = []
        """The parts of the path that were not there, the directory itself first."""

    def make(self) -> None:
        """Make the directory where there is none.

        Raises:
            ConfigError: it cannot be made.
        """
        try:
            missing = [part for part in (self._path, *self._path.parents) if not part.exists()]
            self._path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{self._path} cannot hold the run: {error.strerror}; choose another --run-dir"
            ) from error
        self._made = missing

    def take_away_unused(self) -> None:
        """Remove what `make` made, when the run came to an end before it recorded anything.

        A run interrupted at its start left an empty directory behind, or one of prepared inputs.
        File by file and never a directory that is not empty: what others put there stays, and
        what workers wrote about their end.
        """
        if not self._made or any(_holds(self._path / n) for n in (RECORDS_FILE, EVENTS_FILE)):
            return
        try:
            for name in (RUN_FILE, RECORDS_FILE, EVENTS_FILE, *PREPARED_FILES):
                (self._path / name).unlink(missing_ok=True)
            for part in self._made:
                part.rmdir()
        except OSError:
            return  # Somebody uses it, or it is gone.


def _holds(file: Path) -> bool:
    """Whether there is anything in it."""
    return file.exists() and file.stat().st_size > 0
