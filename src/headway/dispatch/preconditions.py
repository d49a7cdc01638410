"""What jobs can wait for outside the lanes: built-in conditions, and the authors' own (J9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, ValidationError, model_validator

from headway.access.urls import Reach, pinned_addresses, read_target_url
from headway.core.clock import Clock
from headway.core.errors import ConfigError, HeadwayError
from headway.core.states import JobState
from headway.jobs.precondition import Precondition
from headway.jobs.registry import Registry
from headway.store.jobs import JobRow
from headway.store.store import Store
from headway.store.targets import TargetRow

if TYPE_CHECKING:
    import httpx

_HEALTH_TIMEOUT_S = 5.0
_SERVER_ERROR = 500
_JOB_POLL_S = 2.0
_TIME_STEP_S = 3600.0


class PreconditionError(HeadwayError):
    """The condition can never be met; its text becomes the job's error."""


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a condition.

    Attributes:
        waiting_for: None when it is met; else a sentence for a person.
        again_after_s: When to look again.
    """

    waiting_for: str | None
    again_after_s: float = 1.0


class HealthClient:
    """Asks a URL how it is; connects only when asked, because few servers ever are."""

    def __init__(self) -> None:
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def trouble(
        self, url: str, *, any_answer: bool, verify_tls: bool, address: str | None = None
    ) -> str | None:
        """None when the URL answers as wanted, else a sentence. A redirect is not followed.

        Args:
            url: What to GET.
            any_answer: Any status below 500 will do, not only 2xx.
            verify_tls: Whether the certificate must be good.
            address: Connect here; None: look the host's name up.
        """
        import httpx

        try:
            response = await self._get(httpx.URL(url), verify_tls, address)
        except (httpx.HTTPError, OSError) as error:
            return f"{url} does not answer: {str(error) or type(error).__name__}"
        if response.is_success or (any_answer and response.status_code < _SERVER_ERROR):
            return None
        return f"{url} answers with status {response.status_code}"

    async def close(self) -> None:
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()

    async def _get(self, url: httpx.URL, verify_tls: bool, address: str | None) -> httpx.Response:
        client = self._client(verify_tls)
        if address is None:
            return await client.get(url)
        # The name stays in the request and in the certificate's check.
        headers = {"Host": url.netloc.decode()}
        return await client.get(
            url.copy_with(host=address), headers=headers, extensions={"sni_hostname": url.host}
        )

    def _client(self, verify_tls: bool) -> httpx.AsyncClient:
        import httpx

        if verify_tls not in self._clients:
            self._clients[verify_tls] = httpx.AsyncClient(
                timeout=_HEALTH_TIMEOUT_S, verify=verify_tls
            )
        return self._clients[verify_tls]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What conditions look at.

    Attributes:
        registry: Loads the authors' own conditions; called only for jobs that name one, so that a
            worker does not carry every operation's imports.
        target: A registered target by name, whatever its workspaces; None: there is none.
        workspace: Only this workspace's jobs exist for what is looked at; None: all.
    """

    store: Store
    clock: Clock
    health: HealthClient
    registry: Callable[[], Registry]
    target: Callable[[str], Awaitable[TargetRow | None]] | None = None
    workspace: str | None = None


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class JobEnded(_Arguments):
    """Another job has ended: `any` way, or `succeeded`; another end then fails this job."""

    job: str
    outcome: Literal["any", "succeeded"] = "any"

    async def look(self, around: Surroundings) -> Look:
        found = await around.store.find(self.job, around.workspace)
        if not isinstance(found, JobRow):
            raise PreconditionError(f"it waited for job {self.job}, which does not exist")
        if not found.state.is_terminal:
            return Look(f"job {found.id} has not ended yet", _JOB_POLL_S)
        if self.outcome == "succeeded" and found.state is not JobState.SUCCEEDED:
            raise PreconditionError(
                f"it waited for job {found.id} to succeed, which ended as {found.outcome}"
            )
        return Look(None)


class TimeReached(_Arguments):
    """A time has come; without a zone it is UTC."""

    at: datetime

    async def look(self, around: Surroundings) -> Look:
        at = self.at if self.at.tzinfo else self.at.replace(tzinfo=UTC)
        left_s = (at - around.clock.now()).total_seconds()
        if left_s <= 0:
            return Look(None)
        # Looked at now and then even when it is far away: the wall clock may be set.
        return Look(f"it is not {at.isoformat(timespec='seconds')} yet", min(left_s, _TIME_STEP_S))


class TargetHealthy(_Arguments):
    """A URL answers with a 2xx status; with `any_answer`, with any below 500.

    A server that is up may have no page at that path, or want a key for it. One that still loads
    its model does not answer, or says 503. On a shared server it is a registered `target` that is
    asked, at its health path; its addresses are judged at each look.
    """

    url: HttpUrl | None = None
    target: Annotated[str | None, Field(max_length=200)] = None
    any_answer: bool = False
    verify_tls: bool = True
    interval_s: Annotated[float, Field(gt=0, le=3600)] = 1.0

    @model_validator(mode="after")
    def _one_of_both(self) -> TargetHealthy:
        if (self.url is None) == (self.target is None):
            raise ValueError("give a url, or the name of a registered target")
        return self

    async def look(self, around: Surroundings) -> Look:
        if self.target is not None:
            return await self._look_at_target(around, self.target)
        trouble = await around.health.trouble(
            str(self.url), any_answer=self.any_answer, verify_tls=self.verify_tls
        )
        return Look(trouble, self.interval_s)

    async def _look_at_target(self, around: Surroundings, name: str) -> Look:
        row = None if around.target is None else await around.target(name)
        if row is None or around.workspace not in (None, *row.workspaces):
            raise PreconditionError(f"{name!r} is no registered target any more")
        url = read_target_url(row.url)
        try:
            address, *_ = await pinned_addresses(url, Reach(row.reach))
        except ConfigError as error:
            # A name may not resolve yet; one that resolves to a forbidden place is not asked.
            return Look(str(error), self.interval_s)
        trouble = await around.health.trouble(
            url.origin + row.health_path,
            any_answer=self.any_answer,
            verify_tls=self.verify_tls,
            address=address,
        )
        return Look(trouble, self.interval_s)


Looker = Callable[[], Awaitable[Look]]

BUILT_IN: Mapping[str, type[JobEnded | TimeReached | TargetHealthy]] = {
    "job_ended": JobEnded,
    "time_reached": TimeReached,
    "target_healthy": TargetHealthy,
}


def check_precondition(registry: Registry, name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a precondition that does not exist or does not take these arguments.

    Raises:
        ConfigError: one sentence that says what to do.
    """
    if name in BUILT_IN:
        _built_in(name, arguments)
    else:
        _own(registry, name, arguments)


async def looker(around: Surroundings, name: str, arguments: Mapping[str, Any]) -> Looker:
    """A function that looks once at the named condition.

    Raises:
        ConfigError: as for `check_precondition`.
    """
    if name in BUILT_IN:
        return partial(_built_in(name, arguments).look, around)
    # Importing the authors' modules may take seconds: not on the event loop.
    registry = await asyncio.to_thread(around.registry)
    own = _own(registry, name, arguments)

    async def look() -> Look:
        return Look(await own.check(**arguments), own.interval_s)

    return look


def _built_in(name: str, arguments: Mapping[str, Any]) -> JobEnded | TimeReached | TargetHealthy:
    try:
        return BUILT_IN[name].model_validate(dict(arguments))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"precondition {name}: {where}: {first['msg']}") from error


def _own(registry: Registry, name: str, arguments: Mapping[str, Any]) -> Precondition:
    own = registry.precondition(name)
    if own is None:
        names = [*BUILT_IN, *(each.name for each in registry.preconditions)]
        raise ConfigError(
            f"there is no precondition {name!r}; there are: {', '.join(sorted(names))}"
        )
    own.check_parameters(dict(arguments))
    return own
