"""The attempt's debug log: what a job says to `job.log`, apart from its output (J3)."""

from __future__ import annotations

import logging
from io import TextIOWrapper
from pathlib import Path

from headway.jobs.masking import Masker

DEBUG_LOG_LIMIT_BYTES = 64 * 1024 * 1024
_FORMAT = logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(message)s", "%H:%M:%S")
"""Made once: it checks its pattern, which took longer than all else that a logger is."""
_CUT = "[headway: the debug log was cut here: it reached its limit of {} bytes]\n"


class DebugLogHandler(logging.FileHandler):
    """Makes the file with the first record, and stops at a limit with a mark."""

    def __init__(
        self,
        path: Path,
        limit_bytes: int = DEBUG_LOG_LIMIT_BYTES,
        masker: Masker | None = None,
    ) -> None:
        super().__init__(path, encoding="utf-8", delay=True, errors="backslashreplace")
        self._limit = limit_bytes
        self._masker = masker
        self._size = 0
        self.setFormatter(_FORMAT)

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return super()._open()

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, without the values of secrets."""
        text = super().format(record)
        return text if self._masker is None else self._masker.text(text)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless the limit is reached."""
        if self._size > self._limit:
            return
        self._size += len(self.format(record)) + 1
        super().emit(record)
        if self._size > self._limit and self.stream is not None:
            self.stream.write(_CUT.format(self._limit))
            self.flush()


def debug_logger(job_id: str, path: Path, masker: Masker | None = None) -> logging.Logger:
    """A logger of its own: no parent, so that neither side's logging settings touch it."""
    logger = logging.Logger(f"headway.job.{job_id}", logging.DEBUG)
    logger.propagate = False
    logger.addHandler(DebugLogHandler(path, masker=masker))
    return logger


def close_logger(logger: logging.Logger) -> None:
    """Close the logger's files."""
    for handler in list(logger.handlers):
        handler.close()
        logger.removeHandler(handler)
