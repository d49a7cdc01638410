"""An operation: a Python function with a typed input, and how its jobs are to run."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, overload

from headway.core.errors import ConfigError
from headway.core.retry import RetryPolicy
from headway.core.states import Lane
from headway.jobs.describe import type_name
from headway.jobs.precondition import Condition
from headway.jobs.target import AimOf

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

MARK = "__headway_operation__"
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,99}\Z")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Operation:
    """A registered function and the defaults of its jobs.

    Attributes:
        name: In URLs and on the command line.
        function: Takes the job, then its input.
        lane: Where attempts run.
        retryable: A lost or crashed attempt may run again.
        max_attempts: Attempts that may fail before the job has failed.
        timeout_s: Seconds an attempt may run; None: no limit.
        grace_s: Seconds between SIGTERM and SIGKILL of a cancelled attempt.
        retry_on: Errors that are tried again; `Retry` and crashes need not be named.
        backoff_s, backoff_factor, backoff_max_s, jitter, quarantine_after: See
            `headway.core.retry.RetryPolicy`.
        priority: Higher runs first.
        keep_result: False: the result is validated and dropped.
        cancel_on_disconnect: Inline lane: a client that hangs up cancels.
        concurrency_key: Jobs with the same key run one at a time: a text, or a function of the
            input.
        conditions: What each job waits for before it runs, besides what its submitter names: a
            function of the input and the configuration.
        secrets: Names of the secrets that each job asks for, of its input.
        aim: What each job sends load to, where only registered targets may be measured.
        memory_limit_bytes: For the whole process tree of an attempt.
        config: Model of the configuration overlay; None: the operation takes none.
    """

    name: str
    function: Callable[..., Any]
    lane: Lane = Lane.LONG
    retryable: bool = False
    max_attempts: int = 1
    timeout_s: float | None = None
    grace_s: float = 10.0
    retry_on: tuple[type[BaseException], ...] = ()
    backoff_s: float = 1.0
    backoff_factor: float = 2.0
    backoff_max_s: float = 300.0
    jitter: float = 0.2
    quarantine_after: int = 3
    priority: int = 0
    keep_result: bool = True
    cancel_on_disconnect: bool = False
    concurrency_key: str | Callable[[Any], str] | None = None
    conditions: Callable[[Any, Any], Sequence[Condition]] | None = None
    secrets: Callable[[Any], Sequence[str]] | None = None
    aim: AimOf | None = None
    memory_limit_bytes: int | None = None
    config: type[BaseModel] | None = None

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ConfigError(
                f"{self.name!r} is no name for an operation: use lower-case letters, digits and "
                "_ . - beginning with a letter"
            )
        if self.max_attempts < 1:
            raise ConfigError(f"operation {self.name}: max_attempts must be 1 or more")
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ConfigError(f"operation {self.name}: timeout_s must be over 0")
        if self.grace_s < 0 or self.backoff_s < 0 or self.backoff_max_s < 0:
            raise ConfigError(f"operation {self.name}: no time may be under 0")
        if self.backoff_factor < 1 or not 0 <= self.jitter <= 1 or self.quarantine_after < 1:
            raise ConfigError(
                f"operation {self.name}: give backoff_factor >= 1, 0 <= jitter <= 1 and "
                "quarantine_after >= 1"
            )

    @property
    def retry(self) -> RetryPolicy:
        """The retry rules of its jobs."""
        return RetryPolicy(
            max_attempts=self.max_attempts,
            retryable=self.retryable,
            retry_on=tuple(type_name(kind) for kind in self.retry_on),
            backoff_s=self.backoff_s,
            backoff_factor=self.backoff_factor,
            backoff_max_s=self.backoff_max_s,
            jitter=self.jitter,
            quarantine_after=self.quarantine_after,
        )

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def summary(self) -> str:
        """First line of the function's docstring, or nothing."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]

    @cached_property
    def request_model(self) -> type[BaseModel]:
        """The input as one model: the function's own, or one made of its parameters."""
        return _request_model(self)

    @cached_property
    def result_type(self) -> Any:
        """The annotated return type; Any when there is none."""
        return _hints(self).get("return", Any)

    @cached_property
    def result_adapter(self) -> TypeAdapter[Any]:
        """Validates and serializes results."""
        from pydantic import TypeAdapter

        return TypeAdapter(self.result_type)

    @property
    def request_schema(self) -> dict[str, Any]:
        """JSON schema of the input."""
        return self.request_model.model_json_schema()

    @property
    def result_schema(self) -> dict[str, Any]:
        """JSON schema of the result."""
        return self.result_adapter.json_schema(mode="serialization")

    @cached_property
    def takes_model(self) -> bool:
        """Whether the function takes its input as one model rather than as parameters."""
        return _single_model(_parameters(self), _hints(self)) is not None

    def concurrency_key_for(self, request: Any) -> str | None:
        """The key of a job with this validated input."""
        key = self.concurrency_key
        return key(request) if callable(key) else key

    def conditions_for(self, request: Any, config: Any) -> tuple[Condition, ...]:
        """What a job with this validated input and configuration waits for."""
        return () if self.conditions is None else tuple(self.conditions(request, config))

    def secrets_for(self, request: Any) -> tuple[str, ...]:
        """Names of the secrets that a job with this validated input asks for."""
        return () if self.secrets is None else tuple(self.secrets(request))

    def validate_config(self, overlay: Mapping[str, Any]) -> Any:
        """The configuration of a job: the model's defaults under `overlay`.

        Raises:
            ConfigError: the operation takes no configuration.
            pydantic.ValidationError: the overlay does not fit; it has the field paths.
        """
        if self.config is None:
            if overlay:
                raise ConfigError(f"operation {self.name} takes no configuration")
            return {}
        return self.config.model_validate(dict(overlay))


@overload
def operation(function: F) -> F: ...
@overload
def operation(*, name: str | None = None, **options: Any) -> Callable[[F], F]: ...
def operation(function: F | None = None, *, name: str | None = None, **options: Any) -> Any:
    """Mark a function as an operation; `load_operations` finds it in its module.

        @operation(lane="long", retryable=True, timeout_s=3600, max_attempts=3)
        def train(job, request: Train) -> dict: ...

    The first parameter is the job. What follows is the input: one parameter annotated with a
    pydantic model, or any annotated parameters, or nothing. The function stays callable as it is.

    Args:
        function: Set when used without parentheses.
        name: In URLs and on the command line; the function's own name by default.
        **options: The fields of `Operation` after `function`.

    Raises:
        ConfigError: an option or the signature cannot be used.
    """

    def mark(marked: F) -> F:
        setattr(marked, MARK, _build(marked, name, options))
        return marked

    return mark if function is None else mark(function)


def _build(function: Callable[..., Any], name: str | None, options: dict[str, Any]) -> Operation:
    chosen = name or function.__name__.lower()
    unknown = options.keys() - Operation.__dataclass_fields__.keys() | (
        options.keys() & {"name", "function"}
    )
    if unknown:
        raise ConfigError(f"operation {chosen} has no option {', '.join(sorted(unknown))}")
    try:
        options["lane"] = Lane(options.get("lane", Lane.LONG))
    except ValueError:
        raise ConfigError(f"operation {chosen}: lane must be long, short or inline") from None
    if "retry_on" in options and isinstance(options["retry_on"], type):
        options["retry_on"] = (options["retry_on"],)
    return Operation(chosen, function, **options)


def _parameters(op: Operation) -> list[inspect.Parameter]:
    """The parameters behind the job's."""
    parameters = list(inspect.signature(op.function).parameters.values())
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if not parameters or any(p.kind in variadic for p in parameters):
        raise ConfigError(
            f"operation {op.name}: the function must take the job first, and no *args or **kwargs"
        )
    return parameters[1:]


def _hints(op: Operation) -> dict[str, Any]:
    try:
        return typing.get_type_hints(op.function, include_extras=True)
    except Exception as error:
        raise ConfigError(
            f"operation {op.name}: its annotations cannot be read: {error}"
        ) from error


def _single_model(
    parameters: list[inspect.Parameter], hints: dict[str, Any]
) -> type[BaseModel] | None:
    from pydantic import BaseModel

    if len(parameters) != 1:
        return None
    hint = hints.get(parameters[0].name)
    return hint if isinstance(hint, type) and issubclass(hint, BaseModel) else None


def _request_model(op: Operation) -> type[BaseModel]:
    from pydantic import ConfigDict, create_model

    parameters, hints = _parameters(op), _hints(op)
    model = _single_model(parameters, hints)
    if model is not None:
        return model
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name not in hints:
            raise ConfigError(
                f"operation {op.name}: annotate parameter {parameter.name}, so that its input can "
                "be checked"
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    title = "".join(part.capitalize() for part in re.split(r"[_.-]", op.name)) + "Request"
    return create_model(title, __config__=ConfigDict(extra="forbid"), **fields)
