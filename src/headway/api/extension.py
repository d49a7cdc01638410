"""What other parts of the product add to the API, without the API knowing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter

from headway.api.entrance import Entrance
from headway.api.job_access import JobAccess
from headway.api.job_feed import JobFeed
from headway.api.premises import Premises
from headway.api.submission import Submissions
from headway.core.clock import Clock
from headway.jobs.registry import Registry


@dataclass(frozen=True)
class ExtensionParts:
    """What an extension's routes work with: the same as the API's own."""

    access: JobAccess
    submissions: Submissions
    registry: Registry
    feed: JobFeed
    clock: Clock
    entrance: Entrance
    premises: Premises | None = None


Extension = Callable[[ExtensionParts], APIRouter]
"""Makes the routes of an extension: plain ones, so not by `include_router`, which hides them from
the gate; `routes.extend` joins routers."""
