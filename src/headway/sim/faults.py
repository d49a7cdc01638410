"""Faults on demand: which ones a request gets, by header or by the command line's rules.

A fault is written `name` or `name:key=value,key=value`; several are separated by `;`. The header
`x-sim-fault` of a request takes the same notation and wins over the rules.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec

from headway.core.errors import ConfigError

HEADER = b"x-sim-fault"

_Number = TypeVar("_Number", int, float)


_Position = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that goes wrong with one reply. Positions count output tokens before it."""

    status: Annotated[int, msgspec.Meta(ge=100, le=599)] | None = None
    retry_after_s: _Seconds | None = None
    html: bool = False
    stall_at: _Position | None = None
    stall_s: _Seconds = 0.0
    reset_at: _Position | None = None
    close_at: _Position | None = None
    error_event_at: _Position | None = None
    malformed_at: _Position | None = None
    close_idle_s: _Seconds | None = None
    tokens_per_chunk: Annotated[int, msgspec.Meta(ge=1)] = 1
    role_first: bool = False
    usage: bool = True
    done: bool = True

    @property
    def replaces_head(self) -> bool:
        """Whether another answer comes instead of the reply."""
        return self.html or self.status is not None

    @property
    def replaces_answer(self) -> bool:
        """Whether an answer in one piece does not come."""
        return self.replaces_head or self.reset_at is not None or self.close_at is not None

    @property
    def cut_at(self) -> int | None:
        """After how many tokens the reply breaks off for good, if it does."""
        cuts = [at for at in (self.reset_at, self.close_at, self.error_event_at) if at is not None]
        return min(cuts, default=None)


NO_FAULTS = Faults()

# name -> parameter -> (field, reader). A field set by a bare name has its value instead.
_PARAMETERS: dict[str, dict[str, tuple[str, type]]] = {
    "error": {"status": ("status", int)},
    "rate-limit": {"seconds": ("retry_after_s", float)},
    "html": {},
    "stall": {"at": ("stall_at", int), "seconds": ("stall_s", float)},
    "reset": {"at": ("reset_at", int)},
    "close": {"at": ("close_at", int)},
    "error-event": {"at": ("error_event_at", int)},
    "malformed": {"at": ("malformed_at", int)},
    "close-idle": {"seconds": ("close_idle_s", float)},
    "chunk": {"tokens": ("tokens_per_chunk", int)},
    "role-first": {},
    "no-usage": {},
    "no-done": {},
}
FAULT_NAMES = tuple(_PARAMETERS)
_DEFAULTS: dict[str, dict[str, object]] = {
    "error": {"status": 500},
    "rate-limit": {"status": 429, "retry_after_s": 1.0},
    "html": {"html": True},
    "stall": {"stall_at": 0, "stall_s": math.inf},
    "reset": {"reset_at": 0},
    "close": {"close_at": 0},
    "error-event": {"error_event_at": 0},
    "malformed": {"malformed_at": 0},
    "close-idle": {"close_idle_s": 0.0},
    "chunk": {"tokens_per_chunk": 2},
    "role-first": {"role_first": True},
    "no-usage": {"usage": False},
    "no-done": {"done": False},
}
_SELECTORS = ("rate", "every", "first", "on")


class FaultRule(msgspec.Struct, frozen=True, kw_only=True):
    """Faults for some of the requests: a share of them, each n-th, or the first n."""

    fields: dict[str, object]
    rate: float = 1.0
    every: int = 1
    first: int | None = None
    everywhere: bool = False
    """Whether requests that ask the model for nothing (`/v1/models`) get them too."""

    def applies(self, index: int, rng: random.Random) -> bool:
        """Whether the `index`-th request (from 0) gets these faults."""
        if self.first is not None and index >= self.first:
            return False
        if (index + 1) % self.every:
            return False
        return self.rate >= 1 or rng.random() < self.rate


def parse_faults(text: str) -> Faults:
    """Read a header's faults.

    Raises:
        ConfigError: a name, parameter or value is not known; the text lists the valid ones.
    """
    fields: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        part_fields, selectors = _parse_one(part)
        if selectors:
            raise ConfigError(f"a header strikes its own request; drop {', '.join(selectors)}")
        fields |= part_fields
    return _build(fields)


def parse_rule(text: str) -> FaultRule:
    """Read one `--fault` option: a fault that may also say which requests get it.

    `rate=0.1` is a tenth of them, `every=10` each tenth, `first=3` the first three; `on=all` counts
    and strikes all requests, not only those that ask the model for something.

    Raises:
        ConfigError: as for `parse_faults`.
    """
    fields, selectors = _parse_one(text.strip())
    _build(fields)  # refuses at the start what could not strike later
    rate = _read("rate", selectors.get("rate", "1"), float)
    every = _read("every", selectors.get("every", "1"), int)
    first = _read("first", selectors["first"], int) if "first" in selectors else None
    if not 0 <= rate <= 1 or every < 1:
        raise ConfigError(f"fault {text!r}: rate is 0 to 1 and every is at least 1")
    on = selectors.get("on", "generation")
    if on not in ("generation", "all"):
        raise ConfigError(f"fault {text!r}: on is generation or all")
    return FaultRule(fields=fields, rate=rate, every=every, first=first, everywhere=on == "all")


class FaultPlan:
    """Decides each request's faults; the same seed decides the same for the same order."""

    def __init__(self, rules: Iterable[FaultRule], seed: int) -> None:
        self._rules = tuple(rules)
        self._rng = random.Random(seed)
        self._requests = 0
        self._generations = 0

    def next(self, header: bytes | None, generates: bool) -> Faults:
        """The faults of the next request.

        Args:
            header: The request's `x-sim-fault`, which wins over the rules.
            generates: Whether it asks the model for something.

        Raises:
            ConfigError: the header cannot be read.
        """
        if header is not None:
            return parse_faults(header.decode("latin-1"))
        if not self._rules:
            return NO_FAULTS
        fields: dict[str, object] = {}
        for rule in self._rules:
            index = self._requests if rule.everywhere else self._generations
            if (rule.everywhere or generates) and rule.applies(index, self._rng):
                fields |= rule.fields
        self._requests += 1
        self._generations += generates
        return _build(fields) if fields else NO_FAULTS


def _build(fields: dict[str, object]) -> Faults:
    try:
        return msgspec.convert(fields, Faults)
    except msgspec.ValidationError as error:
        raise ConfigError(f"a fault has an impossible value: {error}") from error


def _parse_one(text: str) -> tuple[dict[str, object], dict[str, str]]:
    name, _, rest = text.partition(":")
    if name not in _PARAMETERS:
        raise ConfigError(f"no fault is called {name!r}; there are: {', '.join(_PARAMETERS)}")
    fields = dict(_DEFAULTS[name])
    selectors: dict[str, str] = {}
    for pair in filter(None, rest.split(",")):
        key, _, value = pair.partition("=")
        if key in _SELECTORS:
            selectors[key] = value
        elif key in _PARAMETERS[name]:
            field, reader = _PARAMETERS[name][key]
            fields[field] = _read(key, value, reader)
        else:
            valid = ", ".join((*_PARAMETERS[name], *_SELECTORS))
            raise ConfigError(f"fault {name!r} has no parameter {key!r}; it has: {valid}")
    return fields, selectors


def _read(key: str, value: str, reader: type[_Number]) -> _Number:
    try:
        return reader(value)
    except ValueError as error:
        raise ConfigError(f"{key}={value!r} of a fault is no number") from error
