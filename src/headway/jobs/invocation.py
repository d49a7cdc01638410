"""Calling an operation: validated JSON in, JSON out, every error as a value.

Shared by the process lanes and the inline lane, so that an operation behaves alike in all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.core.failure import ErrorInfo
from headway.core.nesting import MAX_LEVELS, is_nested_deeper
from headway.jobs.describe import describe
from headway.jobs.retry import Retry

if TYPE_CHECKING:
    from pydantic import BaseModel

    from headway.jobs.context import JobContext
    from headway.jobs.masking import Masker
    from headway.jobs.operation import Operation

_RESULT_LEVELS = MAX_LEVELS - 1
"""The answer that holds a result is one level itself."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The result as JSON text; None when it is not to be kept."""

    result: bytes | None


@dataclass(frozen=True, slots=True)
class AskedRetry:
    """The operation raised Retry."""

    after_s: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The operation failed.

    Attributes:
        retry: The operation's `retry_on` names the error.
        out_of_memory: The error is a MemoryError.
    """

    error: ErrorInfo
    retry: bool = False
    out_of_memory: bool = False


Answer = Returned | AskedRetry | Failed


def parse_request(operation: Operation, request: bytes) -> BaseModel:
    """The validated input.

    Raises:
        pydantic.ValidationError: with the field paths.
    """
    return operation.request_model.model_validate_json(request)


def arguments(operation: Operation, job: JobContext, request: BaseModel) -> tuple[Any, ...]:
    """What the function is to be called with."""
    if operation.takes_model:
        return (job, request)
    return (job, *(getattr(request, name) for name in type(request).model_fields))


def answer_for_result(operation: Operation, value: Any, keep: bool, limit_bytes: int) -> Answer:
    """Validate and serialize what the function returned.

    A result that does not fit its type or has no JSON form is an error that says why, never None
    (trap 4).

    Args:
        operation: Whose function it was.
        value: What it returned.
        keep: Whether anybody wants it; if not, its size does not matter.
        limit_bytes: Largest JSON text of a result that is kept.
    """
    adapter = operation.result_adapter
    try:
        text = adapter.dump_json(adapter.validate_python(value))
    except MemoryError as error:
        return Failed(describe(error), out_of_memory=True)
    except Exception as error:  # noqa: BLE001 - serializers run the author's code
        words = f"{_kind(value)} cannot be a result of {operation.name}: {error}"
        return Failed(ErrorInfo(type="ResultRefused", message=words))
    if not keep:
        return Returned(None)
    if len(text) > limit_bytes:
        return _too_large(len(text), limit_bytes)
    if is_nested_deeper(text, _RESULT_LEVELS):
        return _too_deep()
    return Returned(text)


def answer_for_error(operation: Operation, error: BaseException) -> Answer:
    """What an exception of the function means.

    SystemExit and the like are errors too, not the end of the process (trap 8).
    """
    if isinstance(error, Retry):
        return AskedRetry(error.after_s, error.reason)
    return Failed(
        describe(error),
        retry=isinstance(error, operation.retry_on),
        out_of_memory=isinstance(error, MemoryError),
    )


def masked(answer: Answer, masker: Masker | None) -> Answer:
    """The answer without the values of the attempt's secrets."""
    if masker is None:
        return answer
    match answer:
        case Returned(result):
            return Returned(None if result is None else masker.json(result))
        case AskedRetry(after_s, reason):
            return AskedRetry(after_s, masker.text(reason))
        case Failed(error, retry, out_of_memory):
            return Failed(masker.error(error), retry, out_of_memory)


def _too_large(size_bytes: int, limit_bytes: int) -> Failed:
    words = (
        f"the result has {size_bytes:,} bytes of JSON and may have {limit_bytes:,}: write what is"
        " large to a file, keep that with job.artifact(...) and return its name"
    )
    return Failed(ErrorInfo(type="ResultTooLarge", message=words))


def _too_deep() -> Failed:
    words = (
        f"the result is nested deeper than {_RESULT_LEVELS} levels, which clients cannot read: make"
        " it flat, or keep it as a file with job.artifact(...) and return its name"
    )
    return Failed(ErrorInfo(type="ResultRefused", message=words))


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
