"""An attempt's surroundings inside its process: environment, directories, standard streams."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping
from typing import IO, Any

from headway.execution.linux import clear_c_environment, flush_c_streams
from headway.execution.messages import Start

COLOURS = {"FORCE_COLOR": "1", "CLICOLOR_FORCE": "1", "TERM": "xterm-256color"}
"""The log keeps colours, so tools are told that they may use them though it is no terminal (J3)."""

THREAD_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""Each library starts a thread per CPU otherwise, times the number of jobs (trap 18)."""


def job_environment(base: Mapping[str, str], start: Start) -> dict[str, str]:
    """Every variable that the attempt sees: nothing is left over from the attempt before."""
    colours = {} if "NO_COLOR" in start.env else COLOURS
    return {
        **base,
        **colours,
        # A Python grandchild's lines appear when they are printed, and in order.
        "PYTHONUNBUFFERED": "1",
        **start.env,
        **start.secrets.env,
        "TMPDIR": start.temp_dir,
        "HEADWAY_JOB_ID": start.job_id,
        "HEADWAY_ATTEMPT": str(start.attempt),
        "HEADWAY_OPERATION": start.operation,
    }


class Surroundings:
    """Enters and leaves an attempt's environment, temp directory and log.

    Args:
        base: The environment variables of every job.
    """

    def __init__(self, base: Mapping[str, str]) -> None:
        self._base = dict(base)
        self._null = os.open(os.devnull, os.O_RDWR)
        # No attempt ever sees these, so they are as good after one as before it.
        self._between = _streams()
        self._connect(self._null, self._between)

    def enter(self, start: Start, log: int) -> dict[str, str]:
        """Give the process to the attempt; `log` becomes standard output and error.

        Returns:
            The environment.
        """
        # Fresh ones: the attempt before may have closed, replaced or detached its own.
        self._connect(log, _streams())
        os.close(log)
        environment = job_environment(self._base, start)
        _replace_environment(environment)
        os.chdir(start.temp_dir)
        tempfile.tempdir = None
        return environment

    def flush(self) -> None:
        """Write what Python's and C's buffers hold. Streams that the job closed are left alone."""
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        flush_c_streams()

    def leave(self) -> None:
        """Close the log and leave the temp directory. `enter` replaces the environment."""
        self._connect(self._null, self._between)
        os.chdir("/")
        tempfile.tempdir = None

    def _connect(self, descriptor: int, streams: tuple[IO[Any], ...]) -> None:
        """Let output go to `descriptor`, and nothing come in."""
        os.dup2(self._null, 0)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


def _streams() -> tuple[IO[Any], ...]:
    """Standard input, output and error, on the descriptors that they always have."""
    return _stream(0, "r"), _stream(1, "w"), _stream(2, "w")


def _stream(descriptor: int, mode: str) -> IO[Any]:
    # Line buffering keeps the order between Python, C code and children, line by line.
    return open(
        descriptor,
        mode,
        buffering=1,
        encoding="utf-8",
        errors="backslashreplace" if mode == "w" else "replace",
        closefd=False,
    )


def _replace_environment(environment: Mapping[str, str]) -> None:
    """Leave exactly these variables, in Python's mapping and in the C library's.

    Most stay as they are from one attempt to the next; setting those in the mapping again took most
    of the 0.1 ms that entering an attempt took.
    """
    present = dict(os.environ)
    for name in present.keys() - environment.keys():
        del os.environ[name]
    clear_c_environment()
    for name, value in environment.items():
        if present.get(name) == value:
            os.putenv(name, value)
        else:
            os.environ[name] = value
