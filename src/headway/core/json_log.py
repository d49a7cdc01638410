"""The server's own log: one JSON object a line, with secrets taken out."""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

_SECRET_NAME = re.compile(r"(?i)(authorization|token|secret|password|passwd|api[_-]?key|cookie)")
_SECRET_TEXT = re.compile(
    r"(?i)\b(bearer\s+|(?:token|secret|password|passwd|api[_-]?key)\s*[=:]\s*)[^\s,;&\"']+"
)
# Our own access tokens, wherever they stand; `headway.access.tokens` makes them.
_ACCESS_TOKEN = re.compile(r"\bhw_[0-9a-z]{12}_[0-9a-z]+")
# They tell at every start what they are made of.
_CHATTY = ("alembic", "httpx", "uvicorn")
REDACTED = "[redacted]"


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON.

    `extra={"fields": {...}}` adds fields; a field with a secret's name is not written.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            line.update({name: _clean(name, value) for name, value in fields.items()})
        if record.exc_info:
            line["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, default=str)


def redact(text: str) -> str:
    """`text` without what follows the words that announce a secret, and without access tokens."""
    return _ACCESS_TOKEN.sub(REDACTED, _SECRET_TEXT.sub(rf"\1{REDACTED}", text))


def log_as_json(stream: TextIO | None = None, level: int = logging.INFO) -> None:
    """Send this process's log to `stream` (standard error), one JSON object a line."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _clean(name: str, value: Any) -> Any:
    if _SECRET_NAME.search(name):
        return REDACTED
    return redact(value) if isinstance(value, str) else value
