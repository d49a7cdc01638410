"""Finds what a row's fields mean by their usual names."""

from __future__ import annotations

import math
from typing import Any

from headway.load.inputs.problems import RowError

PROMPT_NAMES = (
    "prompt",
    "question",
    "instruction",
    "text",
    "input",
    "query",
    "content",
    "request",
)
OUTPUT_TOKENS_NAMES = (
    "output_tokens",
    "max_tokens",
    "max_completion_tokens",
    "output_length",
    "output_len",
    "completion_tokens",
)
ANSWER_NAMES = ("answer", "response", "completion", "output", "target")
_MAX_TOKENS = 100_000_000


def field_name(name: str) -> str:
    """The form in which names are compared."""
    return name.strip().lower()


class FieldNames:
    """A row's fields, found without regard to case; empty ones count as absent."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = {field_name(name): value for name, value in fields.items()}

    def first(self, names: tuple[str, ...]) -> Any:
        """The first of the named fields that there is; None: there is none.

        Args:
            names: As `field_name` makes them.
        """
        for name in names:
            value = self._fields.get(name)
            if value is not None and value != "":
                return value
        return None


def prompt_text(value: Any, what: str) -> str:
    """A prompt.

    Args:
        value: What was found.
        what: Whose it is.

    Raises:
        RowError: it is no text, or one without anything in it.
    """
    if value is None:
        raise RowError(f"{what} has no prompt")
    if not isinstance(value, str):
        raise RowError(f"the prompt of {what} is not a text")
    if not value.strip():
        raise RowError(f"the prompt of {what} is empty")
    return value


def body_of(fields: dict[str, Any]) -> dict[str, Any] | None:
    """The fields for the request's own body."""
    body = fields.get("body")
    return body if isinstance(body, dict) and body else None


def seconds(value: Any, name: str) -> float:
    """A time in seconds.

    Raises:
        RowError: it is not a number of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RowError(f"{name} is not a number")
    if not 0 <= value < math.inf:
        raise RowError(f"{name} is not a number of at least 0")
    return float(value)


def whole_number(value: Any, name: str) -> int | None:
    """A length in tokens, given as a number or as the text of one; None stays None.

    Raises:
        RowError: it is not a whole number of at least 1.
    """
    if value is None:
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not (1 <= number <= _MAX_TOKENS and number % 1 == 0):
        raise RowError(f"{name} is not a whole number of at least 1: {str(value)[:40]!r}")
    return int(number)
