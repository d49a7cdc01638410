"""The run directory: what a run leaves behind, and all that a report is made from.

`run.json` says what was asked and on what it ran; `records.jsonl` and `events.jsonl` only grow.
Both are read up to their last newline, so a directory left by kill -9 is a shorter run, not a
broken one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from headway.core.errors import ConfigError
from headway.records.record import RequestRecord, RunEvent

RUN_SCHEMA_VERSION = 1
_READ_BYTES = 1 << 20


class RunFile(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The content of `run.json`."""

    schema_version: int = RUN_SCHEMA_VERSION
    run_id: str
    created: str
    """UTC, ISO 8601."""
    seed: int
    spec: dict[str, Any]
    """The RunSpec as JSON, without secrets."""
    provenance: dict[str, Any] = {}
    """Versions, host, target identity, workload hash, how tokens were counted."""
    calibration: dict[str, Any] | None = None
    """The client's own floor; None: not measured."""


class RunDirectory:
    """Reads and extends one run directory. One process writes; any may read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._records: IO[bytes] | None = None
        self._events: IO[bytes] | None = None

    @classmethod
    def create(cls, path: Path, run: RunFile) -> RunDirectory:
        """Make the directory and its `run.json`.

        Raises:
            ConfigError: it already holds a run; nothing is overwritten.
        """
        path.mkdir(parents=True, exist_ok=True)
        if (path / "run.json").exists():
            raise ConfigError(f"{path} already holds a run; choose another --run-dir")
        directory = cls(path)
        directory.write_run(run)
        return directory

    def write_run(self, run: RunFile) -> None:
        """Replace `run.json` atomically."""
        text = msgspec.json.format(msgspec.json.encode(run), indent=2)
        temporary = self.path / "run.json.tmp"
        temporary.write_bytes(text + b"\n")
        os.replace(temporary, self.path / "run.json")

    def read_run(self) -> RunFile:
        """Read `run.json`.

        Raises:
            ConfigError: there is none, or it is not one of ours.
        """
        file = self.path / "run.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=RunFile)
        except FileNotFoundError as error:
            raise ConfigError(f"{self.path} is not a run directory: it has no run.json") from error
        except msgspec.DecodeError as error:
            raise ConfigError(f"{file} cannot be read: {error}") from error

    def append_records(self, lines: bytes) -> None:
        """Append whole JSON lines, as workers encode them; handed to the kernel before return."""
        if self._records is None:
            self._records = self._open_for_append("records.jsonl")
        self._records.write(lines)

    def append_event(self, event: RunEvent) -> None:
        """Append one event; handed to the kernel before return."""
        if self._events is None:
            self._events = self._open_for_append("events.jsonl")
        self._events.write(msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        """Close the files; safe to call twice."""
        for file in (self._records, self._events):
            if file is not None:
                file.close()
        self._records = self._events = None

    def records(self) -> Iterator[RequestRecord]:
        """Every whole record, in the order of arrival at the file."""
        decoder = msgspec.json.Decoder(RequestRecord)
        for line in _whole_lines(self.path / "records.jsonl"):
            yield decoder.decode(line)

    def events(self) -> Iterator[RunEvent]:
        """Every whole event, in order."""
        decoder: msgspec.json.Decoder[RunEvent] = msgspec.json.Decoder(RunEvent)
        for line in _whole_lines(self.path / "events.jsonl"):
            yield decoder.decode(line)

    def _open_for_append(self, name: str) -> IO[bytes]:
        # Unbuffered: what was appended survives the death of this process.
        return open(self.path / name, "ab", buffering=0)


def _whole_lines(file: Path) -> Iterator[bytes]:
    try:
        source = file.open("rb", buffering=_READ_BYTES)
    except FileNotFoundError:
        return
    with source:
        for line in source:
            if line.endswith(b"\n"):
                yield line
