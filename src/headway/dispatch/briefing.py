"""What an attempt is given when it is claimed: its secrets, and its target as it is registered now.

Both were checked when the job was submitted. They are checked again here, because between the two
a secret may have been removed, a target taken from the workspace, a ceiling lowered.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from headway.access.sealing import CannotOpen, Sealer
from headway.access.secret_keys import SecretKeys
from headway.core.errors import ConfigError, StoreUnavailable
from headway.core.failure import ErrorInfo
from headway.jobs.secrets import NO_SECRETS, SecretValues, merged_names
from headway.jobs.target import TargetGrant
from headway.store.attempts import ClaimedJob
from headway.store.jobs import Payload
from headway.store.secrets import SecretStore
from headway.store.targets import TargetRow, TargetStore

_STORE_RETRY_S = 0.25


@dataclass(frozen=True, slots=True)
class Briefing:
    """What one attempt is given besides its payload."""

    secrets: SecretValues = NO_SECRETS
    target: TargetGrant | None = None


NOTHING_MORE = Briefing()


def needs_briefing(payload: Payload) -> bool:
    """Whether a job has secrets or a target; most have neither."""
    return bool(payload.secrets or payload.secret_names or payload.target)


class Briefings:
    """Looks up what attempts are given.

    Args:
        secrets: Sealed.
        keys: What they are opened with.
        targets: The registry.
        data_dir: Where the files of jobs with a target have to lie; None: they may read none.
    """

    def __init__(
        self,
        secrets: SecretStore,
        keys: SecretKeys,
        targets: TargetStore,
        data_dir: Path | None = None,
    ) -> None:
        self._secrets = secrets
        self._keys = keys
        self._targets = targets
        self._data_dir = data_dir

    async def of(self, claimed: ClaimedJob) -> Briefing | ErrorInfo:
        """What the attempt is given; an error with the reason why it cannot run any more."""
        if not needs_briefing(claimed.payload):
            return NOTHING_MORE
        while True:
            try:
                return await self._of(claimed.job.workspace, claimed.payload)
            except StoreUnavailable:
                await asyncio.sleep(_STORE_RETRY_S)

    async def target(self, name: str, workspace: str) -> TargetGrant | None:
        """A registered target of the workspace; None: it is not, or not any more."""
        row = await self._targets.target(name)
        if row is None or workspace not in row.workspaces:
            return None
        return grant_of(row, self._data_dir)

    async def _of(self, workspace: str, payload: Payload) -> Briefing | ErrorInfo:
        target = None
        if payload.target is not None:
            target = await self.target(payload.target, workspace)
            if target is None:
                text = f"{payload.target!r} is no registered target of {workspace!r} any more"
                return ErrorInfo(type="TargetGone", message=text)
        secrets = await self._opened(workspace, payload)
        return secrets if isinstance(secrets, ErrorInfo) else Briefing(secrets, target)

    async def _opened(self, workspace: str, payload: Payload) -> SecretValues | ErrorInfo:
        names = merged_names(payload.secrets, payload.secret_names)
        values: dict[str, str] = {}
        for name in names:
            value = await self._value(workspace, name)
            if isinstance(value, ErrorInfo):
                return value
            values[name] = value
        return SecretValues(
            env={variable: values[name] for variable, name in payload.secrets.items()},
            named={name: values[name] for name in payload.secret_names},
        )

    async def _value(self, workspace: str, name: str) -> str | ErrorInfo:
        # Twice, for the moment in which a rotation has changed the row or the keys, not yet both.
        for last in (False, True):
            sealed = await self._secrets.sealed_secret(workspace, name)
            if sealed is None:
                text = f"the workspace {workspace!r} has no secret {name!r} any more; set it again"
                return ErrorInfo(type="SecretMissing", message=text)
            try:
                return (await asyncio.to_thread(self._sealer)).open(workspace, name, sealed)
            except (CannotOpen, ConfigError) as error:
                if last:
                    return ErrorInfo(type="SecretUnreadable", message=str(error))
        raise AssertionError("the loop returns")

    def _sealer(self) -> Sealer:
        return self._keys.sealer()


def grant_of(row: TargetRow, data_dir: Path | None) -> TargetGrant:
    """A registered target as a job gets it."""
    return TargetGrant(
        name=row.name,
        url=row.url,
        reach=row.reach,
        max_rate_per_s=row.max_rate_per_s,
        max_streams=row.max_streams,
        lock_group=row.lock_group,
        health_path=row.health_path,
        secret=row.secret,
        data_dir=None if data_dir is None else str(data_dir),
    )
