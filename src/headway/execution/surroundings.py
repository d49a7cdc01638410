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
        self._connect(self._null)

    def enter(self, start: Start, log: int) -> dict[str, str]:
        """Give the process to the attempt; `log` becomes standard output and error.

        Returns:
            The environment.
        """
        self._connect(log)
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
        self._connect(self._null)
        os.chdir("/")
        tempfile.tempdir = None

    def _connect(self, descriptor: int) -> None:
        """Make fresh standard streams: the job may have closed, replaced or detached the old."""
        os.dup2(self._null, 0)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            stream = _stream(number, "w" if number else "r")
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)


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
