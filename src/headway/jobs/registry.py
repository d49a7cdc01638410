"""The operations and preconditions of a server, found in the modules it was started with."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from headway.core.errors import ConfigError
from headway.jobs.operation import MARK as OPERATION_MARK
from headway.jobs.operation import Operation
from headway.jobs.precondition import MARK as PRECONDITION_MARK
from headway.jobs.precondition import Precondition


class Registry:
    """Operations and preconditions by name."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._preconditions: dict[str, Precondition] = {}

    def add(self, operation: Operation) -> None:
        """Add an operation.

        Raises:
            ConfigError: another function has its name, or its signature cannot be used.
        """
        known = self._operations.setdefault(operation.name, operation)
        if known.function is not operation.function:
            raise ConfigError(
                f"two operations have the name {operation.name}: {_where(known.function)} and "
                f"{_where(operation.function)}"
            )
        # Built now, so that a bad signature stops the server's start, not the first job.
        _ = operation.request_model, operation.result_adapter

    def add_precondition(self, precondition: Precondition) -> None:
        """Add a precondition.

        Raises:
            ConfigError: another function has its name.
        """
        known = self._preconditions.setdefault(precondition.name, precondition)
        if known.check is not precondition.check:
            raise ConfigError(
                f"two preconditions have the name {precondition.name}: {_where(known.check)} and "
                f"{_where(precondition.check)}"
            )

    def get(self, name: str) -> Operation | None:
        """The operation of that name."""
        return self._operations.get(name)

    def precondition(self, name: str) -> Precondition | None:
        """The precondition of that name."""
        return self._preconditions.get(name)

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        """All preconditions, by name."""
        return tuple(self._preconditions[name] for name in sorted(self._preconditions))

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._operations[name] for name in sorted(self._operations))

    def __len__(self) -> int:
        return len(self._operations)

    def __contains__(self, name: object) -> bool:
        return name in self._operations


def load_operations(*modules: str) -> Registry:
    """Import modules and collect their operations and preconditions.

    Args:
        *modules: Dotted names, or paths of `.py` files.

    Raises:
        ConfigError: a module is missing or fails, or holds no operation, or names collide.
    """
    registry = Registry()
    for name in modules:
        module = _import(name)
        if not _collect(module, registry):
            raise ConfigError(f"{name} has no operation: mark its functions with @operation(...)")
    return registry


def _collect(module: ModuleType, registry: Registry) -> int:
    """Add what the module holds; returns how many operations that was."""
    count = 0
    for value in list(vars(module).values()):
        operation = getattr(value, OPERATION_MARK, None)
        if isinstance(operation, Operation):
            registry.add(operation)
            count += 1
        condition = getattr(value, PRECONDITION_MARK, None)
        if isinstance(condition, Precondition):
            registry.add_precondition(condition)
    return count


def _import(name: str) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _import_file(Path(name))
        return importlib.import_module(name)
    except ConfigError:
        raise
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise ConfigError(
                f"there is no module {name}: give a name that `python -c 'import {name}'` "
                "accepts here, or the path of a .py file"
            ) from error
        raise ConfigError(f"module {name} cannot be imported: {error}") from error
    except Exception as error:
        raise ConfigError(
            f"module {name} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def _import_file(path: Path) -> ModuleType:
    path = path.resolve()
    known = sys.modules.get(path.stem)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        raise ConfigError(f"{path} has the name of the module {path.stem}; rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _where(function: object) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"
