"""Registered targets, as operations see them that send load somewhere.

Where a server is shared, only an administrator says what may be measured. An operation that aims
at something declares it (`operation(aim=...)`): when a job is submitted the server hands it the
registry, and it answers with the target that the job is for, or refuses. When the job runs, the
target as it is registered then comes along, and is checked again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from headway.core.errors import ConfigError
from headway.jobs.precondition import Condition


class TargetGrant(msgspec.Struct, frozen=True, kw_only=True):
    """A registered target, and what a job may do there.

    Attributes:
        url: In normal form; what lies below it belongs to the target.
        reach: How far into networks of one's own its addresses may lie.
        max_rate_per_s, max_streams: Ceilings; None: none.
        lock_group: Targets of one group are measured one at a time.
        health_path: What is asked before a run begins.
        secret: Name of the secret that is the API key when a job names no other.
        data_dir: Directory that files have to lie in; None: no file may be read.
    """

    name: str
    url: str
    reach: str
    max_rate_per_s: float | None = None
    max_streams: int | None = None
    lock_group: str
    health_path: str
    secret: str | None = None
    data_dir: str | None = None


@dataclass(frozen=True, slots=True)
class Aim:
    """What an operation makes of a submission.

    Attributes:
        target: The registered target; None: the job sends nothing anywhere.
        concurrency_key: Jobs with the same key run one at a time.
        conditions: What the job waits for.
        secrets: Names of the secrets that the target asks for.
    """

    target: TargetGrant | None
    concurrency_key: str
    conditions: Sequence[Condition] = ()
    secrets: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Range:
    """What the jobs of one workspace may be aimed at.

    Attributes:
        targets: The workspace's registered targets.
        data_dir: As in `TargetGrant`.
        finder: The target that a URL belongs to, by the server's own reading of URLs.
        is_free: The server is one person's own: what is not registered may be measured too.
    """

    targets: Sequence[TargetGrant]
    data_dir: Path | None
    finder: Callable[[str], TargetGrant | None]
    is_free: bool = False

    def named(self, reference: str) -> TargetGrant | None:
        """The target with this name."""
        return next((target for target in self.targets if target.name == reference), None)

    def find(self, reference: str) -> TargetGrant:
        """The target with this name, or that this URL belongs to.

        Raises:
            ConfigError: there is none; the text names those that there are.
        """
        found = self.named(reference)
        if found is None and "://" in reference:
            found = self.finder(reference)
        if found is not None:
            return found
        names = ", ".join(target.name for target in self.targets[:20]) or "none yet"
        raise ConfigError(
            f"{reference!r} is not a registered target of this workspace (registered: {names}); "
            "an administrator registers one with `headway targets set NAME URL --for WORKSPACE`"
        )


AimOf = Callable[[Any, Any, Range], Aim | None]
"""Of the validated input, the configuration and the range. None: the server is free, and the target
is none of those registered. Raises ConfigError to refuse."""
