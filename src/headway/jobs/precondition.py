"""Conditions that a job may wait for outside the lanes (J9)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from headway.core.errors import ConfigError

MARK = "__headway_precondition__"
F = TypeVar("F", bound=Callable[..., Awaitable[str | None]])


@dataclass(frozen=True, slots=True)
class Precondition:
    """An author's own condition.

    Attributes:
        check: Async function of keyword parameters that returns None when the job may run, else a
            sentence that says what it waits for. An exception fails the job with its text.
        interval_s: Seconds between two looks.
    """

    name: str
    check: Callable[..., Awaitable[str | None]]
    interval_s: float = 1.0

    def check_parameters(self, parameters: dict[str, Any]) -> None:
        """Refuse parameters that the function does not take.

        Raises:
            ConfigError: naming what is missing or unknown.
        """
        try:
            inspect.signature(self.check).bind(**parameters)
        except TypeError as error:
            raise ConfigError(f"precondition {self.name}: {error}") from None


@dataclass(frozen=True, slots=True)
class Condition:
    """What a job waits for: a precondition by name, with its arguments.

    Attributes:
        arguments: JSON values.
        timeout_s: Seconds of waiting after which the job has failed; None: no limit.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    timeout_s: float | None = None


def precondition(*, name: str | None = None, interval_s: float = 1.0) -> Callable[[F], F]:
    """Mark an async function as a precondition that jobs may name.

        @precondition(interval_s=5)
        async def gpu_free(count: int = 1) -> str | None:
            return None if free_gpus() >= count else "no GPU is free"

    Args:
        name: The name in requests; the function's own by default.
        interval_s: Seconds between two looks, > 0.
    """

    def mark(function: F) -> F:
        chosen = name or str(getattr(function, "__name__", "precondition"))
        # Not narrowed by the check: the function is returned with the type it came with.
        is_async: bool = inspect.iscoroutinefunction(function)
        if not is_async or not interval_s > 0:
            raise ConfigError(f"precondition {chosen} must be async, with an interval_s over 0")
        setattr(function, MARK, Precondition(chosen, function, interval_s))
        return function

    return mark
