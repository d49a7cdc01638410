"""Distributions that a user can write: `512`, `512±128`, `uniform:64..256`, `lognormal:512±256`.

Used for lengths in tokens, think times and simulated delays, so that one notation serves all.
"""

from __future__ import annotations

import math
import random
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from headway.core.errors import ConfigError


class _Distribution(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Constant(_Distribution):
    """Always `value`."""

    kind: Literal["constant"] = "constant"
    value: float = Field(ge=0)

    def draw(self, rng: random.Random) -> float:
        return self.value

    @property
    def mean(self) -> float:
        return self.value


class Normal(_Distribution):
    """A normal distribution cut to [minimum, maximum] by clamping."""

    kind: Literal["normal"] = "normal"
    mean: float = Field(ge=0)
    sd: float = Field(ge=0)
    minimum: float = Field(default=0, ge=0)
    maximum: float | None = None

    def draw(self, rng: random.Random) -> float:
        return _clamp(rng.gauss(self.mean, self.sd), self.minimum, self.maximum)


class Uniform(_Distribution):
    """Every value between `low` and `high` alike."""

    kind: Literal["uniform"] = "uniform"
    low: float = Field(ge=0)
    high: float = Field(ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.high < self.low:
            raise ValueError(f"uniform needs low <= high, not {self.low}..{self.high}")
        return self

    def draw(self, rng: random.Random) -> float:
        return rng.uniform(self.low, self.high)

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2


class Lognormal(_Distribution):
    """A lognormal distribution given by the mean and standard deviation of its values.

    Source: with mean m and standard deviation s, the logarithm has variance ln(1 + s²/m²) and
    mean ln(m) minus half of that variance (Johnson, Kotz, Balakrishnan, Continuous Univariate
    Distributions vol. 1, ch. 14).
    """

    kind: Literal["lognormal"] = "lognormal"
    mean: float = Field(gt=0)
    sd: float = Field(ge=0)
    minimum: float = Field(default=0, ge=0)
    maximum: float | None = None

    def draw(self, rng: random.Random) -> float:
        variance = math.log1p((self.sd / self.mean) ** 2)
        mu = math.log(self.mean) - variance / 2
        return _clamp(rng.lognormvariate(mu, math.sqrt(variance)), self.minimum, self.maximum)


class Empirical(_Distribution):
    """Values drawn with replacement from the given ones, for example a file's lengths."""

    kind: Literal["empirical"] = "empirical"
    values: tuple[float, ...] = Field(min_length=1)

    def draw(self, rng: random.Random) -> float:
        return rng.choice(self.values)

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)


_AnyDistribution = Annotated[
    Constant | Normal | Uniform | Lognormal | Empirical, Field(discriminator="kind")
]

_NUMBER = r"(\d+(?:\.\d+)?)"
_FORMS = (
    (re.compile(rf"^{_NUMBER}$"), lambda m: Constant(value=float(m[1]))),
    (
        re.compile(rf"^(?:normal:)?{_NUMBER}(?:±|\+-|\+/-){_NUMBER}$"),
        lambda m: Normal(mean=float(m[1]), sd=float(m[2])),
    ),
    (
        re.compile(rf"^(?:uniform:)?{_NUMBER}(?:\.\.|-){_NUMBER}$"),
        lambda m: Uniform(low=float(m[1]), high=float(m[2])),
    ),
    (
        re.compile(rf"^lognormal:{_NUMBER}(?:±|\+-|\+/-){_NUMBER}$"),
        lambda m: Lognormal(mean=float(m[1]), sd=float(m[2])),
    ),
)


def parse_distribution(text: str) -> Constant | Normal | Uniform | Lognormal:
    """Read the short notation.

    Args:
        text: `512`, `512±128` (also `512+-128`), `64..256`, `lognormal:512±256`.

    Raises:
        ConfigError: the text is none of these; the message lists them.
    """
    compact = text.replace(" ", "")
    for pattern, build in _FORMS:
        match = pattern.match(compact)
        if match:
            return build(match)
    raise ConfigError(
        f"cannot read {text!r} as a distribution; valid: 512, 512±128, 64..256, lognormal:512±256"
    )


def _from_short_notation(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return Constant(value=value)
    if isinstance(value, str):
        try:
            return parse_distribution(value)
        except ConfigError as error:
            raise ValueError(str(error)) from error
    return value


Distribution = Annotated[_AnyDistribution, BeforeValidator(_from_short_notation)]
"""A field type: accepts a number, the short notation, or the full mapping."""


def draw_int(distribution: _AnyDistribution, rng: random.Random, minimum: int = 0) -> int:
    """Draw a whole number, not below `minimum`."""
    return max(minimum, round(distribution.draw(rng)))


def _clamp(value: float, minimum: float, maximum: float | None) -> float:
    value = max(value, minimum)
    return value if maximum is None else min(value, maximum)
