"""The registered targets: kept in memory too, because every submission of a load test asks.

One server owns a state directory, and every change goes through it: what is in memory is what is
stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from headway.access.urls import (
    Reach,
    Resolve,
    TargetUrl,
    check_addresses,
    reach_of,
    read_target_url,
    resolve,
)
from headway.api.problems import Refusal
from headway.client.provision_models import TargetRequest
from headway.core.errors import ConfigError
from headway.dispatch.briefing import grant_of
from headway.jobs.target import Range, TargetGrant
from headway.store.targets import TargetRow, TargetStore

MAX_TARGETS = 1000
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


class TargetRegistry:
    """What may be measured, by whom, and how hard.

    Args:
        store: Keeps it.
        data_dir: Where files have to lie that jobs at these targets read; None: they read none.
        resolver: Looks names up.
    """

    def __init__(
        self, store: TargetStore, data_dir: Path | None, resolver: Resolve = resolve
    ) -> None:
        self._store = store
        self._data_dir = data_dir
        self._resolve = resolver
        self._rows: dict[str, TargetRow] = {}

    async def load(self) -> None:
        """Read what is stored; once, before the first request."""
        self._rows = {row.name: row for row in await self._store.targets()}

    def all(self) -> list[TargetRow]:
        """Every target by name."""
        return sorted(self._rows.values(), key=lambda row: row.name)

    def of(self, workspace: str) -> list[TargetRow]:
        """The targets that a workspace may measure, by name."""
        return [row for row in self.all() if workspace in row.workspaces]

    def range_of(self, workspace: str, *, is_free: bool = False) -> Range:
        """What jobs of a workspace may be aimed at.

        Args:
            workspace: Whose.
            is_free: The server is one person's own: anything, by URL.
        """
        grants = [grant_of(row, self._data_dir) for row in self.of(workspace)]
        return Range(grants, self._data_dir, lambda url: _found(grants, url), is_free)

    async def put(self, name: str, asked: TargetRequest, by: str) -> TargetRow:
        """Register a target, or change it.

        Raises:
            Refusal: 409; its server is registered with another lock group, or the registry is
                full. 422; the URL or its addresses are not allowed.
        """
        if name not in self._rows and len(self._rows) >= MAX_TARGETS:
            raise Refusal(409, f"there are {MAX_TARGETS} targets already")
        try:
            url = read_target_url(asked.url)
            health = read_target_url(url.origin + asked.health_path)
            reach = await self._reach(url, asked.reach)
        except ConfigError as error:
            raise Refusal(422, f"the target cannot be registered: {error}") from None
        row = TargetRow(
            name=name,
            url=url.text,
            reach=reach.value,
            workspaces=tuple(sorted(set(asked.workspaces))),
            max_rate_per_s=asked.max_rate_per_s,
            max_streams=asked.max_streams,
            lock_group=asked.lock_group or name,
            health_path=health.path or "/",
            secret=asked.secret,
            changed_at=_NEVER,
            changed_by=by,
        )
        self._check_group(row, url)
        stored = await self._store.put_target(row)
        self._rows[name] = stored
        return stored

    async def remove(self, name: str) -> None:
        """Forget a target; jobs that wait for it fail when they are claimed.

        Raises:
            Refusal: 404; there is none.
        """
        if not await self._store.remove_target(name):
            raise Refusal(404, f"there is no target {name!r}")
        self._rows.pop(name, None)

    async def _reach(self, url: TargetUrl, asked: str | None) -> Reach:
        """Where the host lies; registering it is what allows that.

        Raises:
            ConfigError: it lies elsewhere than asked, or does not resolve and nothing was asked.
        """
        try:
            addresses = await self._resolve(url.host, url.port)
        except OSError:
            addresses = []
        if asked is None and not addresses:
            raise ConfigError(
                f"{url.host} does not resolve now; say with reach whether it will be public, "
                "private or loopback"
            )
        found = reach_of(url.host, addresses)
        if asked is None:
            return found
        check_addresses(url.host, addresses, Reach(asked))
        return Reach(asked)

    def _check_group(self, row: TargetRow, url: TargetUrl) -> None:
        """One server cannot be in two groups: it would be measured twice at once (trap 53)."""
        for other in self._rows.values():
            same = read_target_url(other.url).origin == url.origin
            if same and other.name != row.name and other.lock_group != row.lock_group:
                raise Refusal(
                    409,
                    f"{other.name!r} is on the same server and has the lock group "
                    f"{other.lock_group!r}; give this one the same",
                )


def _found(grants: Sequence[TargetGrant], reference: str) -> TargetGrant | None:
    """The target that a URL belongs to, the one with the longest path where there are several.

    Raises:
        ConfigError: the URL can be read in more than one way.
    """
    asked = read_target_url(reference)
    fitting = [grant for grant in grants if read_target_url(grant.url).contains(asked)]
    return max(fitting, key=lambda grant: len(grant.url), default=None)
