"""The run directory: what a run leaves behind, and all that a report is made from.

`run.json` says what was asked and on what it ran; `records.jsonl` and `events.jsonl` only grow.
Both are read up to their last newline, so a directory left by kill -9 is a shorter run, not a
broken one. A line that is whole and still unreadable is damage, and reading says where it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from headway.core.errors import ConfigError, DiskError, InputError
from headway.records.record import RequestRecord, RunEvent

RUN_SCHEMA_VERSION = 1
RUN_FILE = "run.json"
RECORDS_FILE = "records.jsonl"
EVENTS_FILE = "events.jsonl"
_READ_BYTES = 1 << 20
_TAIL_BYTES = 1 << 16

_Line = TypeVar("_Line")


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
        self._records: _LineFile | None = None
        self._events: _LineFile | None = None

    @classmethod
    def create(cls, path: Path, run: RunFile) -> RunDirectory:
        """Make the directory and its `run.json`.

        Raises:
            ConfigError: it already holds a run (nothing is overwritten), or cannot be made.
            DiskError: `run.json` cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"cannot make the run directory {path}: {error.strerror}") from error
        if (path / RUN_FILE).exists():
            raise ConfigError(f"{path} already holds a run; choose another --run-dir")
        directory = cls(path)
        directory.write_run(run)
        return directory

    def write_run(self, run: RunFile) -> None:
        """Replace `run.json` atomically.

        Raises:
            DiskError: it cannot be written; the former one stays.
        """
        text = msgspec.json.format(msgspec.json.encode(run), indent=2)
        self.write_file(RUN_FILE, text + b"\n")

    def write_file(self, name: str, content: bytes) -> Path:
        """Replace a file of the directory atomically: readers see the old one or the new.

        Raises:
            DiskError: it cannot be written; the former one stays.
        """
        temporary, file = self.path / f"{name}.tmp", self.path / name
        try:
            temporary.write_bytes(content)
            os.replace(temporary, file)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _disk_error(file, error) from error
        return file

    def read_run(self) -> RunFile:
        """Read `run.json`.

        Raises:
            ConfigError: there is none, or it is not one of ours.
        """
        file = self.path / RUN_FILE
        try:
            return msgspec.json.decode(file.read_bytes(), type=RunFile)
        except FileNotFoundError as error:
            raise ConfigError(f"{self.path} is not a run directory: it has no run.json") from error
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise ConfigError(f"{file} cannot be read: {error}") from error

    def append_records(self, lines: bytes) -> None:
        """Append whole JSON lines, as workers encode them; handed to the kernel before return.

        Raises:
            DiskError: not all could be written; the file was cut back to what it held before.
        """
        if self._records is None:
            self._records = _LineFile(self.path / RECORDS_FILE)
        self._records.append(lines)

    def append_event(self, event: RunEvent) -> None:
        """Append one event; handed to the kernel before return.

        Raises:
            DiskError: it could not be written; the file is as before.
        """
        if self._events is None:
            self._events = _LineFile(self.path / EVENTS_FILE)
        self._events.append(msgspec.json.encode(event) + b"\n")

    def close(self) -> None:
        """Close the files; safe to call twice."""
        for file in (self._records, self._events):
            if file is not None:
                file.close()
        self._records = self._events = None

    def records(self, stage: int | None = None) -> Iterator[RequestRecord]:
        """Every whole record, in the order of arrival at the file.

        Args:
            stage: Only this stage's records.

        Raises:
            InputError: a line is damaged; the text says which.
        """
        records = _decoded(self.path / RECORDS_FILE, msgspec.json.Decoder(RequestRecord))
        if stage is None:
            return records
        return (record for record in records if record.stage == stage)

    def events(self) -> Iterator[RunEvent]:
        """Every whole event, in order.

        Raises:
            InputError: a line is damaged; the text says which.
        """
        decoder: msgspec.json.Decoder[RunEvent] = msgspec.json.Decoder(RunEvent)
        return _decoded(self.path / EVENTS_FILE, decoder)


class _LineFile:
    """A file that only ever grows by whole lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            # Unbuffered: what was appended survives the death of this process.
            self._file = open(path, "ab+", buffering=0)  # noqa: SIM115 # closed by close()
            self._cut_torn_line()
        except OSError as error:
            raise _disk_error(path, error) from error

    def append(self, lines: bytes) -> None:
        before = self._file.tell()
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            # A full disk takes part of a write. Left there, it would spoil the next line as well.
            self._file.truncate(before)
            raise _disk_error(self._path, error) from error

    def close(self) -> None:
        self._file.close()

    def _cut_torn_line(self) -> None:
        # A run that goes on after kill -9 must not glue its first line to half of another.
        end = self._file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - _TAIL_BYTES)
            self._file.seek(start)
            newline = self._file.read(end - start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        self._file.truncate(end)
        self._file.seek(end)


def _decoded(file: Path, decoder: msgspec.json.Decoder[_Line]) -> Iterator[_Line]:
    decode = decoder.decode
    try:
        source = file.open("rb", buffering=_READ_BYTES)
    except FileNotFoundError:
        return
    with source:
        for number, line in enumerate(source, 1):
            try:
                decoded = decode(line)
            except msgspec.DecodeError as error:
                if not line.endswith(b"\n"):
                    return  # torn by the writer's death
                raise InputError(f"{file} is damaged in line {number}: {error}") from error
            if line.endswith(b"\n"):
                yield decoded


def _disk_error(file: Path, error: OSError) -> DiskError:
    return DiskError(
        f"cannot write {file}: {error.strerror or error}; what it held before is whole"
    )
