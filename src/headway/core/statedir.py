"""The state directory: where everything that a server keeps has its place."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from headway.core.errors import ConfigError


class StateDir:
    """Names the files of one server's state directory; only its owner may read them.

    Its parts are cached: joining paths was a fifth of the worker's time for a short job.

    Args:
        root: The directory; made by `create`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def create(self) -> None:
        """Make the directory and its parts, private to this user.

        Raises:
            ConfigError: it cannot be made or written.
        """
        try:
            for part in self._parts:
                part.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"cannot use {self.root} as the state directory: {error.strerror};"
                " choose another with --state-dir"
            ) from error
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise ConfigError(f"the state directory {self.root} cannot be written")

    @property
    def _parts(self) -> tuple[Path, ...]:
        kept = (self.logs, self.artifacts, self.results, self.work)
        return (self.root, *kept, self.tmp, self.run)

    @cached_property
    def database(self) -> Path:
        return self.root / "headway.db"

    @cached_property
    def writer_lock(self) -> Path:
        """Held by the process that writes to the database, for one batch at a time."""
        return self.root / "headway.db.writer"

    @cached_property
    def server_lock(self) -> Path:
        """Held by the one server of this directory for its whole life."""
        return self.run / "server.lock"

    @cached_property
    def logs(self) -> Path:
        return self.root / "logs"

    @cached_property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @cached_property
    def results(self) -> Path:
        """Results too large for the database."""
        return self.root / "results"

    @cached_property
    def work(self) -> Path:
        """Working directories that outlive attempts."""
        return self.root / "work"

    @cached_property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @cached_property
    def run(self) -> Path:
        """Sockets and locks of the processes that live now."""
        return self.root / "run"

    @cached_property
    def bells(self) -> Path:
        """One datagram socket for each process that listens to doorbells."""
        return self.run / "bells"

    @cached_property
    def metrics_sockets(self) -> Path:
        """One socket for each worker process, where it answers with its metrics."""
        return self.run / "metrics"

    def job_logs(self, job_id: str) -> Path:
        return self.logs / job_id

    def attempt_log(self, job_id: str, attempt: int) -> Path:
        """Standard output and error of one attempt, in the order they were written."""
        return self.job_logs(job_id) / f"{attempt}.log"

    def attempt_debug_log(self, job_id: str, attempt: int) -> Path:
        """What Headway itself says about one attempt."""
        return self.job_logs(job_id) / f"{attempt}.debug.log"

    def attempt_progress(self, job_id: str, attempt: int) -> Path:
        """The numbers that one attempt told of its progress, a line of JSON at a time."""
        return self.job_logs(job_id) / f"{attempt}.progress.jsonl"

    def job_artifacts(self, job_id: str) -> Path:
        return self.artifacts / job_id

    def job_results(self, job_id: str) -> Path:
        return self.results / job_id

    def job_work(self, job_id: str) -> Path:
        return self.work / job_id

    def attempt_tmp(self, job_id: str, attempt: int) -> Path:
        return self.tmp / f"{job_id}-{attempt}"
