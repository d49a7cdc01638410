"""Records as one Parquet file, for notebooks and warehouses; needs the extra `parquet`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from headway.core.errors import ConfigError, DiskError
from headway.records.record import RequestRecord
from headway.records.run_dir import RunDirectory

PARQUET_FILE = "records.parquet"
_ROWS_AT_ONCE = 20_000
"""A row group: what is held in memory, whatever the length of the run."""

_TEXT = frozenset({"status", "output_tokens_source", "finish_reason", "partial_text"})
_FLAGS = frozenset({"connection_reused", "resent"})


def write_parquet(directory: RunDirectory) -> Path:
    """Write every record as a row of `records.parquet`; fields that are absent are null.

    The failure is flattened to `failure_category`, `failure_message`, `failure_status` and
    `failure_body`.

    Raises:
        ConfigError: pyarrow is not installed.
        DiskError: the file cannot be written.
        InputError: the records are damaged.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(
            "Parquet needs pyarrow; install it with: pip install 'headway[parquet]'"
        ) from error
    schema = _schema(pyarrow)
    file = directory.path / PARQUET_FILE
    temporary = file.with_suffix(".parquet.tmp")
    try:
        with pyarrow.parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for rows in _batches(_row(record) for record in directory.records()):
                writer.write_table(pyarrow.Table.from_pylist(rows, schema=schema))
        os.replace(temporary, file)
    except OSError as error:
        raise DiskError(f"cannot write {file}: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
    return file


def _schema(pyarrow: Any) -> Any:
    fields = []
    for field in msgspec.structs.fields(RequestRecord):
        if field.name == "failure":
            continue
        if field.name == "gaps_ns":
            kind = pyarrow.list_(pyarrow.int64())
        elif field.name in _TEXT:
            kind = pyarrow.string()
        else:
            kind = pyarrow.bool_() if field.name in _FLAGS else pyarrow.int64()
        fields.append((field.name, kind))
    fields += [(f"failure_{name}", pyarrow.string()) for name in ("category", "message", "body")]
    return pyarrow.schema([*fields, ("failure_status", pyarrow.int64())])


def _row(record: RequestRecord) -> dict[str, Any]:
    row = msgspec.structs.asdict(record)
    failure = row.pop("failure")
    for name in ("category", "message", "body", "status"):
        row[f"failure_{name}"] = getattr(failure, name, None)
    return row


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while batch := list(itertools.islice(rows, _ROWS_AT_ONCE)):
        yield batch
