"""How parts of the store get their operations run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from headway.store.sqlite.transaction import Transaction

P = ParamSpec("P")
T = TypeVar("T")


class Run(Protocol):
    """Runs an operation in a transaction of its own, on the connection that suits it."""

    def __call__(
        self,
        operation: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Awaitable[T]: ...
