"""What is kept of an exception: text and structure, never a pickle (trap 13, J13)."""

from __future__ import annotations

import traceback

from headway.core.failure import ErrorInfo

MAX_TEXT = 64 * 1024
MAX_CAUSES = 10


def describe(error: BaseException, depth: int = MAX_CAUSES) -> ErrorInfo:
    """What to keep of `error`; long texts are cut in the middle, causes followed `depth` deep."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    frames = traceback.format_exception(type(error), error, error.__traceback__, chain=False)
    return ErrorInfo(
        type=type_name(type(error)),
        message=_cut(_message(error)),
        traceback=_cut("".join(frames)),
        cause=describe(cause, depth - 1) if cause is not None and depth > 0 else None,
    )


def type_name(kind: type[BaseException]) -> str:
    """The name under which an exception class is kept and matched."""
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001 - a broken __str__ must not hide the error
        return f"(its text could not be made: {type(broken).__name__})"


def _cut(text: str) -> str:
    # Lone surrogates, legal in a str, could not be written as JSON.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]}\n[... {len(text) - MAX_TEXT} characters cut ...]\n{text[-half:]}"
