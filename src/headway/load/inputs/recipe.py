"""What the parent prepared and a worker needs to make the content of any request."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from pydantic import TypeAdapter

from headway.load.inputs.row_file import RowFile
from headway.load.inputs.vocabulary import Vocabulary
from headway.load.spec import InputSpec
from headway.records.record import Note

HASH_VERSION = 1
"""Raised when the same spec and file begin to mean other content."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Prepared inputs: small, plain data that crosses to the workers."""

    spec: dict[str, Any]
    """The InputSpec as JSON."""
    vocabulary: Vocabulary
    rows: RowFile | None = None
    """The file's conversations, the trace's lengths or the measured lengths, one a row."""
    offsets: str | None = None
    """Traces: the file of arrival offsets, 64-bit integers, nanoseconds."""
    conversations: int | None = None
    """How many there are in each stage; None: they do not end."""
    workload_hash: str
    """SHA-256 of what is sent, apart from seed, machine and path: equal for like workloads."""
    notes: tuple[Note, ...] = ()
    provenance: dict[str, Any] = {}
    """How prompts were counted and what was read, for the run's provenance."""

    def input_spec(self) -> InputSpec:
        """The InputSpec that was prepared."""
        adapter: TypeAdapter[InputSpec] = TypeAdapter(InputSpec)
        return adapter.validate_python(self.spec)


def workload_hash(parameters: dict[str, Any], rows_sha256: str | None = None) -> str:
    """The hash of what is sent.

    Args:
        parameters: Everything but rows that decides about content, as JSON values.
        rows_sha256: The hash of the normalised rows, where there are some.
    """
    content = {"version": HASH_VERSION, "parameters": parameters, "rows": rows_sha256}
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
