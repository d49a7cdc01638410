"""What an operation is given as its first argument: its job."""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from headway.core.errors import ConfigError
from headway.jobs.artifacts import Artifact, ArtifactDir
from headway.jobs.cancellation import JobCancelled
from headway.jobs.job_dir import JobDir
from headway.jobs.masking import Masker
from headway.jobs.secrets import NO_SECRETS, SecretValues
from headway.jobs.target import TargetGrant

P = ParamSpec("P")
R = TypeVar("R")

MAX_MESSAGE = 2000
MAX_NUMBERS = 200


class JobSink(Protocol):
    """Where a job's words go; the process lanes and the inline lane each have their own."""

    def progress(
        self, fraction: float | None, message: str | None, numbers: dict[str, float]
    ) -> None:
        """Tell how far the job is."""

    def artifact(self, artifact: Artifact) -> None:
        """Tell that an artifact is complete."""

    def cancel_requested(self) -> bool:
        """Whether the job is to stop."""


@dataclass(frozen=True, slots=True)
class AttemptPlace:
    """What an attempt has for itself.

    Attributes:
        temp_dir: Removed when the attempt ends; in the process lanes also the working directory.
        job_dir: Kept for the job's next attempts.
        env: The attempt's environment; in the process lanes the same as `os.environ`.
        log: Writes to the attempt's debug log, apart from its output.
        secrets: The values that the attempt was given.
        masker: Takes them out of what the job says; None: there are none.
        target: The registered target that the job may measure; None: not restricted to one.
    """

    temp_dir: Path
    job_dir: JobDir
    artifacts: ArtifactDir
    env: Mapping[str, str]
    log: logging.Logger
    secrets: SecretValues = NO_SECRETS
    masker: Masker | None = None
    target: TargetGrant | None = None


@dataclass(frozen=True)
class JobContext:
    """The job, as its operation sees it.

    Attributes:
        id: The job's id.
        attempt: Number of this try, from 1.
        operation: Name of the operation.
        labels: As submitted.
        config: The operation's configuration model, or an empty dict when it declares none.
    """

    id: str
    attempt: int
    operation: str
    labels: Mapping[str, str]
    config: Any
    place: AttemptPlace = field(repr=False)
    sink: JobSink = field(repr=False)
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def temp_dir(self) -> Path:
        """A directory of this attempt's own, removed when it ends."""
        return self.place.temp_dir

    @property
    def job_dir(self) -> Path:
        """The job's working directory: what an attempt leaves there, the next one finds.

        It is this attempt's own copy; nothing that an earlier attempt still does shows in it. It is
        removed together with the job.
        """
        return self.place.job_dir.open()

    @property
    def env(self) -> Mapping[str, str]:
        """This attempt's environment variables; the only way to read them in the inline lane."""
        return self.place.env

    def secret(self, name: str) -> str:
        """The value of a secret that the operation named for this job.

        It is taken out of what the job says (log, progress, error, result), not out of the files
        that it writes.

        Raises:
            ConfigError: the job was not given it.
        """
        return self.place.secrets.get(name)

    @property
    def target(self) -> TargetGrant | None:
        """The registered target that the job may measure; None: not restricted to one."""
        return self.place.target

    @property
    def log(self) -> logging.Logger:
        """A logger for details: it goes to the debug log, not to the job's output."""
        return self.place.log

    def progress(
        self, fraction: float | None = None, message: str | None = None, **numbers: float
    ) -> None:
        """Say how far the job is. Cheap, also in a tight loop; only the newest is kept.

        Args:
            fraction: 0 to 1.
            message: One line.
            **numbers: Named finite numbers, such as `loss=0.3`.
        """
        if fraction is not None and not 0 <= fraction <= 1:
            raise ConfigError(f"progress(fraction={fraction}): give a number from 0 to 1")
        if len(numbers) > MAX_NUMBERS:
            raise ConfigError(f"progress() takes {MAX_NUMBERS} numbers at most")
        finite = {name: float(value) for name, value in numbers.items() if math.isfinite(value)}
        text = None if message is None else str(message)
        masker = self.place.masker
        if masker is not None:
            # Before it is cut: half a value would not be recognised.
            text = None if text is None else masker.text(text)
            finite = {masker.text(name): value for name, value in finite.items()}
        self.sink.progress(
            None if fraction is None else float(fraction),
            None if text is None else text[:MAX_MESSAGE],
            finite,
        )

    def artifact(
        self,
        name: str,
        source: Path | str | bytes,
        media_type: str | None = None,
        *,
        share: bool = False,
    ) -> Artifact:
        """Keep a file for the job's users.

        Args:
            name: Its name; parts may be separated by `/`.
            source: A file to copy, or the content.
            media_type: Guessed from the name when None.
            share: Do not copy the file but let the artifact be the same file, where the file system
                can: for big ones that nobody writes to any more.

        Raises:
            ConfigError: the name leads out of the artifacts or holds a secret, or the file is
                missing or too big.
        """
        masker = self.place.masker
        if masker is not None and masker.text(name) != name:
            raise ConfigError("an artifact's name holds the value of a secret")
        artifact = self.place.artifacts.add(name, source, media_type, share)
        self.sink.artifact(artifact)
        return artifact

    def check_cancelled(self) -> None:
        """Raise JobCancelled when the job is to stop; for threads and long loops in C code.

        The main thread of a process lane gets the exception without asking.
        """
        if self.sink.cancel_requested():
            raise JobCancelled("the job is to stop")


_current: ContextVar[JobContext] = ContextVar("headway_job")


def current_job() -> JobContext:
    """The job that the calling code runs in.

    Raises:
        ConfigError: outside a job.
    """
    job = _current.get(None)
    if job is None:
        raise ConfigError("current_job() was called outside a job")
    return job


def enter_job(job: JobContext) -> None:
    """Make `job` the current one of this context; lanes call it in a context of its own."""
    _current.set(job)


def attempt_cache(function: Callable[P, R]) -> Callable[P, R]:
    """Cache results for the length of one attempt, so that nothing leaks into the next job.

    Arguments must be hashable. Outside a job nothing is cached.
    """

    @functools.wraps(function)
    def cached(*args: P.args, **kwargs: P.kwargs) -> R:
        job = _current.get(None)
        if job is None:
            return function(*args, **kwargs)
        key = (cached, args, tuple(sorted(kwargs.items())))
        if key not in job._cache:
            job._cache[key] = function(*args, **kwargs)
        result: R = job._cache[key]
        return result

    return cached
