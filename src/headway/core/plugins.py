"""Objects by name: from an installed package's entry points, or `module:name`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Literal

from headway.core.errors import ConfigError, HeadwayError

Group = Literal["headway.backends", "headway.arrivals", "headway.inputs"]


def make_plugin(group: Group, name: str, **given: Any) -> Any:
    """What the factory `name` makes of `given`.

    Raises:
        ConfigError: as `load_plugin`, or the factory raised.
    """
    factory = load_plugin(group, name)
    try:
        return factory(**given)
    except HeadwayError:
        raise
    except Exception as error:
        raise ConfigError(f"{name} could not be made: {type(error).__name__}: {error}") from error


def load_plugin(group: Group, name: str) -> Callable[..., Any]:
    """The factory that `name` stands for.

    Args:
        group: The group of entry points that is searched.
        name: An entry point's name, or `module:name` of what is importable without one.

    Raises:
        ConfigError: there is none of that name, or it cannot be imported; the text says which
            there are.
    """
    if ":" in name:
        return import_callable(name)
    found = entry_points(group=group)
    chosen = [point for point in found if point.name == name]
    if not chosen:
        known = ", ".join(sorted({point.name for point in found})) or "none are installed"
        raise ConfigError(
            f"no installed package offers {name!r} in the entry points {group} ({known}); "
            "install one, or write module:name"
        )
    return import_callable(chosen[0].value)


def import_callable(name: str) -> Callable[..., Any]:
    """What `module:name` stands for; the name may be dotted.

    Raises:
        ConfigError: it cannot be imported or called.
    """
    module_name, _, path = name.partition(":")
    try:
        found: Any = import_module(module_name)
    except ImportError as error:
        raise ConfigError(
            f"cannot import {module_name} ({error}); is its directory in PYTHONPATH?"
        ) from error
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ConfigError(f"{module_name} has no callable {path}")
    function: Callable[..., Any] = found
    return function
