"""Reads traces: recorded arrivals with their lengths.

Formats: Mooncake (JSON lines: `timestamp` in milliseconds, `input_length`, `output_length`,
`hash_ids`), sessions (JSON lines with `turns`), Azure (CSV: `TIMESTAMP`, `ContextTokens`,
`GeneratedTokens`), and bare timestamps (one a line, seconds or ISO 8601).
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from headway.core.errors import ConfigError
from headway.load.inputs.counted import CountedVocabulary
from headway.load.inputs.formats import FileFormat
from headway.load.inputs.importing import Imported, Source, import_rows
from headway.load.inputs.problems import NOTE_TOPIC, RowError
from headway.load.inputs.recipe import Recipe, workload_hash
from headway.load.inputs.row_file import RowFile, RowReader
from headway.load.inputs.rows import numbered_lines, open_input
from headway.load.inputs.session_trace import Session, SessionReader
from headway.load.inputs.timestamps import ns_from_number, ns_from_text
from headway.load.spec import TraceInputSpec
from headway.records.record import Note

TraceFormat = Literal["mooncake", "sessions", "azure", "timestamps"]

_FILE_FORMATS: dict[TraceFormat, FileFormat] = {
    "mooncake": "jsonl",
    "sessions": "jsonl",
    "azure": "csv",
    "timestamps": "text",
}
_NS_PER_MS = 1_000_000
_MAX_LENGTH = 100_000_000
_PLACE_FIELDS = {"path", "format", "tokenizer"}


class TraceRow(msgspec.Struct, frozen=True, array_like=True):
    """What a trace says of one request."""

    input_tokens: int | None
    output_tokens: int | None
    blocks: tuple[int, ...] = ()
    """Names of the blocks that its text begins with; equal names, equal text."""


def trace_format(spec: TraceInputSpec) -> TraceFormat:
    """The file's format, told by its first line where the spec leaves it open."""
    if spec.format != "auto":
        return spec.format
    with open_input(spec.path) as file:
        first = (next(numbered_lines(file), (0, b""))[1] or b"").strip().lower()
    if first.startswith(b"{"):
        return "sessions" if b'"turns"' in first else "mooncake"
    return "azure" if b"contexttokens" in first else "timestamps"


def import_trace(
    spec: TraceInputSpec, work_dir: Path, check_stop: Callable[[], None]
) -> tuple[Imported, TraceReader]:
    """Read and order the arrivals of a trace.

    Raises:
        InputError: no line of it can be used.
    """
    reader = TraceReader(trace_format(spec))
    source = Source(spec.path, _FILE_FORMATS[reader.form], work_dir)
    return import_rows(source, reader.parse, check_stop, reader.order), reader


def first_trace_lengths(rows: RowFile, form: TraceFormat, count: int) -> list[int | None]:
    """The first few prompt lengths, for the check of the token count."""
    reader = RowReader(rows)
    try:
        first = [reader[number] for number in range(min(count, rows.count))]
    finally:
        reader.close()
    if form == "sessions":
        sessions = msgspec.json.Decoder(Session)
        return [sessions.decode(row)[0].input_tokens for row in first]
    requests = msgspec.json.Decoder(TraceRow)
    return [requests.decode(row).input_tokens for row in first]


_Parser = Callable[[dict[str, Any]], tuple[int, TraceRow | Session]]


class TraceReader:
    """Reads rows and keeps their times."""

    def __init__(self, form: TraceFormat) -> None:
        self.form = form
        self.times_ns = array("q")
        self.raised = 0
        """Lengths of 0, which no server can be asked for, raised to 1."""
        self.unordered = 0
        """Rows that came after a later one."""
        self._sessions = SessionReader(self._length, _blocks)
        parsers: dict[TraceFormat, _Parser] = {
            "mooncake": self._mooncake,
            "sessions": self._session,
            "azure": self._azure,
            "timestamps": self._timestamps,
        }
        self._parse = parsers[form]

    @property
    def shortened(self) -> int:
        """Turns recorded with a shorter prompt than their history."""
        return self._sessions.shortened

    def parse(self, fields: dict[str, Any]) -> TraceRow | Session:
        """One row.

        Raises:
            RowError: it cannot be used.
            GraphError: the turns of a session do not fit together.
        """
        time_ns, row = self._parse(fields)
        self.times_ns.append(time_ns)
        return row

    def order(self) -> list[int] | None:
        """Sort the times; the positions of the rows in that order, None when they were sorted."""
        times = self.times_ns
        self.unordered = sum(times[n] < times[n - 1] for n in range(1, len(times)))
        if not self.unordered:
            return None
        order = sorted(range(len(times)), key=times.__getitem__)
        self.times_ns = array("q", (times[position] for position in order))
        return order

    def offsets_ns(self) -> array[int]:
        """Times since the first arrival."""
        return array("q", (time - self.times_ns[0] for time in self.times_ns))

    def _mooncake(self, fields: dict[str, Any]) -> tuple[int, TraceRow]:
        if "timestamp" not in fields:
            raise RowError("no timestamp")
        time_ns = ns_from_number(fields["timestamp"], _NS_PER_MS)
        input_tokens = self._length(fields.get("input_length"), "input_length")
        output_tokens = self._length(fields.get("output_length"), "output_length")
        return time_ns, TraceRow(input_tokens, output_tokens, _blocks(fields.get("hash_ids")))

    def _session(self, fields: dict[str, Any]) -> tuple[int, Session]:
        if "timestamp" not in fields:
            raise RowError("no timestamp")
        started_ns = ns_from_number(fields["timestamp"], _NS_PER_MS)
        return self._sessions.read(fields, started_ns)

    def _azure(self, fields: dict[str, Any]) -> tuple[int, TraceRow]:
        named = {name.lower(): value for name, value in fields.items()}
        missing = [name for name in ("TIMESTAMP", "ContextTokens") if name.lower() not in named]
        if missing:
            raise RowError(f"no column {missing[0]!r} (columns: {', '.join(list(fields)[:12])})")
        input_tokens = self._length(named["contexttokens"] or None, "ContextTokens")
        output_tokens = self._length(named.get("generatedtokens") or None, "GeneratedTokens")
        return ns_from_text(named["timestamp"]), TraceRow(input_tokens, output_tokens)

    def _timestamps(self, fields: dict[str, Any]) -> tuple[int, TraceRow]:
        return ns_from_text(fields["prompt"]), TraceRow(None, None)

    def _length(self, value: Any, name: str) -> int | None:
        if value is None:
            return None
        if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_LENGTH:
            raise RowError(f"{name} is not a whole number of tokens: {str(value)[:40]!r}")
        if value == 0:
            self.raised += 1
        return max(1, value)


def trace_recipe(
    spec: TraceInputSpec, imported: Imported, reader: TraceReader, counted: CountedVocabulary
) -> Recipe:
    """Put together what the workers and the arrival side need."""
    offsets = reader.offsets_ns()
    file = Path(imported.rows.data).with_name("inputs.offsets")
    file.write_bytes(offsets.tobytes())
    parameters: dict[str, Any] = spec.model_dump(mode="json", exclude=_PLACE_FIELDS)
    parameters["unit"] = counted.unit
    parameters["offsets_sha256"] = hashlib.sha256(offsets.tobytes()).hexdigest()
    return Recipe(
        spec=spec.model_dump(mode="json") | {"format": reader.form},
        vocabulary=counted.vocabulary,
        rows=imported.rows,
        offsets=str(file),
        conversations=imported.rows.count,
        workload_hash=workload_hash(parameters, imported.sha256),
        notes=(counted.note, *imported.notes, *_order_notes(reader)),
        provenance={
            "prompt_tokens": counted.provenance,
            "rows": imported.rows.count,
            "rows_sha256": imported.sha256,
            "trace_format": reader.form,
        },
    )


def read_offsets(recipe: Recipe) -> Sequence[int]:
    """The arrivals of a trace's recipe, nanoseconds since the first.

    Raises:
        ConfigError: the inputs are not a trace.
    """
    if recipe.offsets is None:
        raise ConfigError("only trace inputs have arrival times (--profile trace needs a trace)")
    offsets = array("q")
    offsets.frombytes(Path(recipe.offsets).read_bytes())
    return offsets


def _blocks(value: Any) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or any(type(one) is not int for one in value):
        raise RowError("hash_ids is not a list of whole numbers")
    return tuple(value)


def _order_notes(reader: TraceReader) -> list[Note]:
    texts = []
    if reader.unordered:
        texts.append(
            f"The trace was not in order of time ({reader.unordered} rows came after a later "
            "one); it was sorted."
        )
    if reader.shortened:
        texts.append(
            f"{reader.shortened} turns were recorded with a prompt no longer than the history that "
            "goes before it; they add one word to it (`history` says what a turn hears)."
        )
    if reader.raised:
        texts.append(f"{reader.raised} lengths of 0 tokens in the trace were raised to 1.")
    return [Note(topic=NOTE_TOPIC, text=text) for text in texts]
