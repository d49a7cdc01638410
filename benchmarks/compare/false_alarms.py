"""How often a comparison of two runs names a difference: where there is none, and where there is.

    python benchmarks/compare/false_alarms.py [--runs 120] [--seed 1]

Runs are made up: 20 requests a second whose durations are log-normal (sd 0.3 on the logarithm) and
share a memory that fades exponentially; half of the variance is the memory's, the other half each
request's own. Every run is held against every other at 95% confidence, by the code that `headway
compare` uses. The last lines say how often a true change of the given size is seen.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from array import array
from dataclasses import dataclass

from headway.compare.bootstrap import Estimate, estimate
from headway.compare.difference import independent
from headway.compare.samples import Durations, Ratio, TooShort

RATE_PER_S = 20.0
SD = 0.3
MEMORY_SHARE = 0.5
CONFIDENCE = 0.95
NS = 1_000_000_000


@dataclass(frozen=True)
class Rates:
    """What all pairs of runs said."""

    pairs: int
    clear: float
    """The share of pairs whose interval leaves out no difference."""
    too_short: float
    """The share of runs of which nothing could be said."""


def durations(
    rng: random.Random, seconds: float, memory_s: float, slower: float = 1.0
) -> Durations:
    """A run's durations. `memory_s` is the time in which a correlation fades to 1/e."""
    fade = math.exp(-1 / (RATE_PER_S * memory_s)) if memory_s else 0.0
    due, values = array("q"), array("d")
    state = rng.gauss(0, 1)
    for i in range(int(seconds * RATE_PER_S)):
        state = fade * state + math.sqrt(1 - fade * fade) * rng.gauss(0, 1)
        own = rng.gauss(0, 1)
        level = math.sqrt(MEMORY_SHARE) * state + math.sqrt(1 - MEMORY_SHARE) * own
        due.append(int(i / RATE_PER_S * NS))
        values.append(slower * math.exp(SD * level))
    return Durations(due, values, 0, int(seconds * NS))


def errors(rng: random.Random, seconds: float, share: float) -> Ratio:
    """A run's error share in bins, failures coming in bursts of one second."""
    bins = 400
    offered = [seconds * RATE_PER_S / bins] * bins
    width = seconds / bins
    failed = [0.0] * bins
    for second in range(int(seconds)):
        if rng.random() < 4 * share:
            for i in range(int(second / width), min(bins, int((second + 1) / width))):
                failed[i] = offered[i] / 4
    return Ratio(failed, offered, int(seconds * NS))


def estimated(data: Durations | Ratio, share: float, rng: random.Random) -> Estimate | None:
    """The estimate that a comparison would make of one run."""
    is_ratio = isinstance(data, Ratio)
    blocks = data.blocks() if isinstance(data, Ratio) else data.blocks(share)
    if isinstance(blocks, TooShort):
        return None
    found = estimate(blocks.data, (lambda value: value) if is_ratio else math.log, rng)
    if found is None:
        return None
    error = found.standard_error / math.sqrt(blocks.variance_share)
    return Estimate(found.value, error, found.freedom)


def rates(a: list[Estimate | None], b: list[Estimate | None] | None = None) -> Rates:
    """Hold every run against every other: of `a` among themselves, or `a` against `b`."""
    known_a = [one for one in a if one is not None]
    known_b = [one for one in b if one is not None] if b is not None else None
    if known_b is None:
        pairs = list(itertools.combinations(known_a, 2))
    else:
        pairs = list(itertools.product(known_a, known_b))
    clear = 0
    for one, other in pairs:
        low, high = independent(one, other).interval(CONFIDENCE)
        clear += low > 0 or high < 0
    runs = [*a, *(b or [])]
    short = sum(one is None for one in runs) / len(runs)
    return Rates(len(pairs), clear / len(pairs) if pairs else math.nan, short)


def estimates(
    runs: int,
    share: float,
    seconds: float,
    memory_s: float,
    rng: random.Random,
    slower: float = 1.0,
) -> list[Estimate | None]:
    """Estimates of one quantile from so many runs."""
    return [estimated(durations(rng, seconds, memory_s, slower), share, rng) for _ in range(runs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    print("no difference (nominal 5%): length, memory, number: false alarms, runs too short")
    for seconds, memory_s, share in itertools.product(
        (30, 120), (0, 0.1, 0.3, 1), (0.5, 0.95, 0.99)
    ):
        seen = rates(estimates(arguments.runs, share, seconds, memory_s, rng))
        print(
            f"{seconds:4d} s  {memory_s:3.1f} s  p{share * 100:g}: "
            f"{seen.clear:6.1%}  {seen.too_short:6.1%}",
            flush=True,
        )
    made = [estimated(errors(rng, 120, 0.02), 0, rng) for _ in range(arguments.runs)]
    print(f" 120 s  bursts errors 2%: {rates(made).clear:.1%}")
    print("power at 120 s, memory 0.3 s: change, number: seen")
    for share in (0.5, 0.99):
        base = estimates(arguments.runs // 2, share, 120, 0.3, rng)
        for change in (0.02, 0.05, 0.1, 0.2):
            other = estimates(arguments.runs // 2, share, 120, 0.3, rng, 1 + change)
            print(f"+{change:.0%}  p{share * 100:g}: {rates(base, other).clear:.0%}", flush=True)


if __name__ == "__main__":
    main()
