"""Bounds on what users and workspaces may ask (J25).

Apart from what applies them: the settings are read before the worker starts, and the web framework
is loaded while it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headway.access.roles import Role

DEFAULT_CEILINGS: Mapping[Role, int] = {Role.USER: 100, Role.ADMIN: 1000}


@dataclass(frozen=True)
class FairUseSettings:
    """Bounds on what one user or workspace may ask; none holds for the local user.

    Attributes:
        requests_per_s: Of one user, over all its tokens and sessions; None: any number.
        submissions_per_min: Jobs that one workspace may submit; None: any number.
        ceilings: The highest priority that each role may ask for.
    """

    requests_per_s: float | None = 200.0
    submissions_per_min: float | None = 60_000.0
    ceilings: Mapping[Role, int] = field(default_factory=lambda: dict(DEFAULT_CEILINGS))
