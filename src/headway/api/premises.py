"""What a job is submitted under besides its operation: an overlay, secrets, targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.access.identity import Identity
from headway.api.overlays import Overlays, merged
from headway.api.problems import Refusal
from headway.api.secret_vault import SecretVault
from headway.api.target_registry import TargetRegistry
from headway.client.models import FieldProblem, PreconditionSpec
from headway.core.errors import ConfigError
from headway.jobs.operation import Operation
from headway.jobs.secrets import merged_names
from headway.jobs.target import Aim
from headway.store.submissions import NewJob

TARGET_HEALTHY = "target_healthy"
_TARGET_KEY = "target "
"""Begins the concurrency key of every job that is aimed at a target."""


class Premises:
    """Applied to every submission; reads memory only, but where a job names secrets.

    Args:
        overlays: What workspaces give to their jobs.
        vault: Their secrets.
        targets: What they may measure.
    """

    def __init__(self, overlays: Overlays, vault: SecretVault, targets: TargetRegistry) -> None:
        self.overlays = overlays
        self.vault = vault
        self.targets = targets

    async def load(self) -> None:
        """Read what is stored; once, before the first request."""
        await self.overlays.load()
        await self.targets.load()

    def env_of(self, workspace: str, env: Mapping[str, str]) -> Mapping[str, str]:
        """A job's variables over its workspace's."""
        under = self.overlays.of(workspace).env
        return {**under, **env} if under else env

    def config_of(
        self, workspace: str, operation: str, config: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """A job's configuration over its workspace's."""
        under = self.overlays.of(workspace).config.get(operation)
        return merged(under, config) if under else config

    def aim_of(
        self, operation: Operation, request: Any, config: Any, caller: Identity
    ) -> Aim | None:
        """What the job is aimed at; None: it is not of that kind, or the server is free.

        Raises:
            ConfigError: the caller's workspace may not aim it there, or not so hard.
        """
        if operation.aim is None:
            return None
        free = is_free(caller)
        if free and not self.targets.of(caller.workspace):
            return None
        return operation.aim(request, config, self.targets.range_of(caller.workspace, is_free=free))

    def condition(self, asked: PreconditionSpec, caller: Identity) -> PreconditionSpec:
        """A precondition as this caller may have it: on a shared server only registered targets
        are asked for their health.

        Raises:
            ConfigError: it is about another.
        """
        if asked.name != TARGET_HEALTHY or is_free(caller):
            return asked
        arguments = dict(asked.arguments)
        reference = arguments.pop("url", None) or arguments.pop("target", None)
        grant = self.targets.range_of(caller.workspace).find(str(reference))
        return asked.model_copy(update={"arguments": {**arguments, "target": grant.name}})

    def check_key(self, key: str, caller: Identity) -> None:
        """Refuse a key that is the lock of a target which the caller's workspace has not.

        Raises:
            ConfigError: it is, or could be; the text does not tell which of them.
        """
        if is_free(caller) or not key.startswith(_TARGET_KEY):
            return
        groups = {row.lock_group for row in self.targets.of(caller.workspace)}
        if key.removeprefix(_TARGET_KEY) not in groups:
            raise ConfigError(
                f"a key that begins with {_TARGET_KEY!r} is the lock group of a registered target,"
                " and this is none of the workspace's"
            )

    async def check(self, jobs: Sequence[NewJob]) -> None:
        """Refuse jobs that name secrets which their workspace has not.

        Raises:
            Refusal: 422; with the names.
        """
        for job in jobs:
            if not (job.secrets or job.secret_names):
                continue
            names = merged_names(job.secrets, job.secret_names)
            missing = await self.vault.missing(job.workspace, names)
            if missing:
                text = (
                    f"the workspace {job.workspace!r} has no secret {', '.join(missing)}; an admin "
                    "of it sets one with `headway secrets set NAME`"
                )
                raise Refusal(422, text, errors=[FieldProblem(path="secrets", message=text)])


def is_free(caller: Identity) -> bool:
    """Whether the server is one person's own: it has no accounts."""
    return caller.via == "local"
