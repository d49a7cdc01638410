"""Text that came out of somebody's Python code, made fit to be written."""

from __future__ import annotations

from typing import Any


def encodable(value: Any) -> Any:
    """A copy of plain data in which every text can be encoded as UTF-8.

    A Python string may hold lone surrogates, which UTF-8 cannot: an exception that names a file
    does, when the name is not UTF-8. Each becomes a question mark.

    Args:
        value: Text, numbers, bytes, None, and lists, tuples and dicts of these.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {encodable(key): encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encodable(item) for item in value]
    return value
