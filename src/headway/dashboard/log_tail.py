"""The end of a job's log as plain text, for a page that must be readable without a script."""

from __future__ import annotations

import re

from headway.api.log_files import JobLogs, LogPosition

LINES = 200
MAX_BYTES = 64 * 1024
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_OVERWRITTEN = re.compile(r"[^\n]*\r(?!\n)")


async def log_tail(logs: JobLogs, attempt: int) -> str:
    """The last lines of the last attempt's log, without colours.

    Args:
        logs: The job's logs.
        attempt: The last attempt; 0 when there was none.
    """
    if attempt == 0:
        return ""
    start = logs.tail(LINES, attempt, attempt, MAX_BYTES)
    end = LogPosition(attempt, logs.size_bytes(attempt))
    pieces = [piece async for piece in logs.pieces(start, end)]
    return plain_text(b"".join(pieces)[-MAX_BYTES:].decode("utf-8", "replace"))


def plain_text(text: str) -> str:
    """`text` as a terminal would leave it, without colours and without control characters."""
    text = _OVERWRITTEN.sub("", _ESCAPES.sub("", text))
    return _CONTROLS.sub("", text).replace("\r\n", "\n")
