"""When requests fall due: arrival processes as pure iterators of offsets from the stage's start.

A process knows nothing of workers, of completions or of clocks. It is read in one place, by the
parent, with the stage's only arrival generator, so the same seed gives the same due times at any
number of workers (trap 26: each worker seeding the same generator gave bursts).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from headway.core.clock import NS_PER_S


class ArrivalProcess(Protocol):
    """Anything that can say when requests fall due."""

    def offsets_ns(self, rng: random.Random) -> Iterator[int]:
        """Offsets from the stage's start, not decreasing, perhaps without end.

        Args:
            rng: The stage's only arrival generator; nothing else draws from it.
        """
        ...


def arrival_rng(seed: int, stage: int) -> random.Random:
    """The generator of a stage's arrivals; stages of one run do not repeat each other."""
    return random.Random(f"headway arrivals {seed} {stage}")


@dataclass(frozen=True)
class ConstantArrivals:
    """Evenly spaced: arrival i is due at i / rate, from the shared start.

    Computed from the index, never by adding gaps: a sum of gaps drifts (trap 29).
    """

    rate_per_s: float

    def offsets_ns(self, rng: random.Random) -> Iterator[int]:
        index = 0
        while True:
            yield round(index * NS_PER_S / self.rate_per_s)
            index += 1


@dataclass(frozen=True)
class PoissonArrivals:
    """A Poisson process: independent exponential gaps.

    Source: Kingman, Poisson Processes (1993), interval theorem.
    """

    rate_per_s: float

    def offsets_ns(self, rng: random.Random) -> Iterator[int]:
        at_s = 0.0
        while True:
            at_s += rng.expovariate(self.rate_per_s)
            yield round(at_s * NS_PER_S)


@dataclass(frozen=True)
class GammaArrivals:
    """A renewal process with gamma-distributed gaps of mean 1 / rate.

    Shape 1 / cv² and scale cv² / rate give that mean and a coefficient of variation of cv; cv 1
    is Poisson.

    Source: Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions vol. 1, ch. 17.
    """

    rate_per_s: float
    cv: float

    def offsets_ns(self, rng: random.Random) -> Iterator[int]:
        shape = 1 / self.cv**2
        scale_s = self.cv**2 / self.rate_per_s
        at_s = 0.0
        while True:
            at_s += rng.gammavariate(shape, scale_s)
            yield round(at_s * NS_PER_S)


@dataclass(frozen=True)
class RampArrivals:
    """The rate moves linearly from one value to another over `duration_s`, then arrivals end.

    With N(t) = a·t + (b - a)·t² / (2·T) arrivals expected by t, arrival i is due where N(t) = i.
    The root is taken as 2·i / (a + sqrt(a² + 2·s·i)) with s = (b - a) / T, which loses no digits
    when s is small and needs no case for s = 0.
    """

    rate_from_per_s: float
    rate_to_per_s: float
    duration_s: float

    def offsets_ns(self, rng: random.Random) -> Iterator[int]:
        slope = (self.rate_to_per_s - self.rate_from_per_s) / self.duration_s
        expected = (self.rate_from_per_s + self.rate_to_per_s) / 2 * self.duration_s
        yield 0
        index = 1
        while index < expected:
            under_root = max(0.0, self.rate_from_per_s**2 + 2 * slope * index)
            at_s = 2 * index / (self.rate_from_per_s + math.sqrt(under_root))
            yield round(at_s * NS_PER_S)
            index += 1


@dataclass(frozen=True)
class TraceArrivals:
    """Recorded offsets, scaled; the first arrival of the trace is the stage's start."""

    recorded_ns: Sequence[int]
    time_scale: float = 1.0

    def offsets_ns(self, rng: random.Random) -> Iterator[int]:
        if not self.recorded_ns:
            return
        first_ns = self.recorded_ns[0]
        for at_ns in self.recorded_ns:
            yield round((at_ns - first_ns) * self.time_scale)
