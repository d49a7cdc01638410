"""What is asked of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.compare.metrics import METRICS, Metric
from headway.compare.words import Rules
from headway.core.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What to look at, and how strictly.

    Args:
        rules: When a difference gets a word.
        metrics: Names, or beginnings of names (`ttft`); empty: all. Looking at fewer numbers
            makes each of them easier to tell.
        stages: Names of stages; empty: all that both runs have.
        allow_different: Compare although more than the target differs, and say so.
        seed: Of the bootstrap. The same runs and seed give the same comparison.
    """

    rules: Rules = field(default_factory=Rules)
    metrics: Sequence[str] = ()
    stages: Sequence[str] = ()
    allow_different: bool = False
    seed: int = 0

    def chosen_metrics(self) -> list[Metric]:
        """The metrics to look at.

        Raises:
            ConfigError: a name is none of ours.
        """
        if not self.metrics:
            return list(METRICS)
        for name in self.metrics:
            if not any(_named(metric, name) for metric in METRICS):
                known = ", ".join(metric.name for metric in METRICS)
                raise ConfigError(f"no metric is called {name}; there are {known}")
        return [m for m in METRICS if any(_named(m, name) for name in self.metrics)]

    def wants_stage(self, name: str) -> bool:
        """Whether a stage of this name is looked at."""
        return not self.stages or name in self.stages


def _named(metric: Metric, name: str) -> bool:
    return metric.name == name or metric.name.startswith(f"{name}_")
