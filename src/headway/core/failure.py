"""What is kept of a failure: enough for a person to act on, and nothing that must be unpickled."""

from __future__ import annotations

import msgspec


class ErrorInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exception, or a death without one, as plain data.

    Attributes:
        type: The exception's class name, or a word for a death (`Killed`, `OutOfMemory`, …).
        message: One clear sentence.
        traceback: The formatted traceback, when there is one.
        cause: What led to it (`raise … from …`).
    """

    type: str
    message: str
    traceback: str | None = None
    cause: ErrorInfo | None = None
