"""Reads rows from JSON lines, or from one JSON array."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from headway.core.errors import InputError
from headway.load.inputs.json_array import ArrayElements, ArrayError
from headway.load.inputs.rows import TOO_LONG, Row, Rows, Unusable, numbered_lines, open_input


def read_json(path: Path) -> Rows:
    """JSON objects, texts or lists of messages, one a line or all in one array."""
    with open_input(path) as file:
        if _is_one_array(file):
            yield from _read_array(path, file)
            return
        for number, line in numbered_lines(file):
            yield Unusable(number, TOO_LONG) if line is None else _json_row(number, line)


def _json_row(place: int, text: bytes) -> Row | Unusable:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Unusable(place, f"not JSON ({error})")
    if isinstance(value, dict):
        return Row(place, value)
    if isinstance(value, str):
        return Row(place, {"prompt": value})
    if _is_messages(value):
        return Row(place, {"messages": value})
    return Unusable(place, "neither an object, a text nor a list of messages")


def _is_one_array(file: BinaryIO) -> bool:
    # A file of rows may be one JSON array (ShareGPT), or JSON lines of which each is a list of
    # messages. The first line decides: a whole list of messages makes it the latter.
    first = next(numbered_lines(file), (0, b""))[1]
    file.seek(0)
    if first is None or not first.lstrip().startswith(b"["):
        return first is None and file.peek(1)[:1] == b"["  # type: ignore[attr-defined] # buffered
    try:
        return not _is_messages(msgspec.json.decode(first))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True


def _is_messages(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and ("role" in one or "from" in one) for one in value)
    )


def _read_array(path: Path, file: BinaryIO) -> Rows:
    try:
        for place, element in enumerate(ArrayElements(file), start=1):
            yield _json_row(place, element)
    except ArrayError as error:
        raise InputError(f"{path} begins as a JSON array but is none: {error}") from error
