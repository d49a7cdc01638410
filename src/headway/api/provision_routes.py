"""Routes of what jobs are provided with: secrets, targets, a workspace's overlay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi import Path as PathParameter

from headway.access.accounts import Act, AuditEvent
from headway.access.identity import Identity
from headway.api.identity import Caller
from headway.api.premises import Premises
from headway.api.problems import MAX_FIELD_PROBLEMS, Refusal, problem_answers
from headway.client.models import FieldProblem
from headway.client.provision_models import (
    Overlay,
    OverlayRequest,
    ProvisionName,
    Reach,
    Rotation,
    Secret,
    SecretList,
    SecretRequest,
    Target,
    TargetList,
    TargetRequest,
)
from headway.store.accounts import AccountStore
from headway.store.overlays import OverlayRow
from headway.store.secrets import SecretRow
from headway.store.targets import TargetRow

Name = Annotated[ProvisionName, PathParameter()]
WorkspaceName = Annotated[str, PathParameter(min_length=1, max_length=200)]
_REACHES: dict[str, Reach] = {
    "public": "public",
    "private": "private",
    "loopback": "loopback",
}


class ProvisionRoutes:
    """The routes under `/v1/secrets`, `/v1/targets` and `/v1/workspaces/{workspace}/overlay`.

    Args:
        premises: What submissions are checked against.
        accounts: Keeps the audit log; None: there is none.
    """

    def __init__(self, premises: Premises, accounts: AccountStore | None = None) -> None:
        self._premises = premises
        self._accounts = accounts

    def router(self) -> APIRouter:
        router = APIRouter(tags=["provisions"])
        self._add_secret_routes(router)
        self._add_target_routes(router)
        overlay = "/v1/workspaces/{workspace}/overlay"
        router.add_api_route(
            overlay, self.overlay, response_model=Overlay, responses=problem_answers(404, 422)
        )
        router.add_api_route(
            overlay, self.put_overlay, methods=["PUT"], response_model=Overlay,
            responses=problem_answers(400, 404, 413, 422, 503),
        )  # fmt: skip
        return router

    def _add_secret_routes(self, router: APIRouter) -> None:
        router.add_api_route("/v1/secrets", self.secrets, response_model=SecretList)
        router.add_api_route(
            "/v1/secrets:rotate", self.rotate, methods=["POST"], response_model=Rotation,
            responses=problem_answers(503),
        )  # fmt: skip
        router.add_api_route(
            "/v1/secrets/{name}", self.put_secret, methods=["PUT"], response_model=Secret,
            responses=problem_answers(400, 409, 413, 422, 503),
        )  # fmt: skip
        router.add_api_route(
            "/v1/secrets/{name}", self.remove_secret, methods=["DELETE"], status_code=204,
            response_class=Response, responses=problem_answers(404, 422, 503),
        )  # fmt: skip

    def _add_target_routes(self, router: APIRouter) -> None:
        router.add_api_route("/v1/targets", self.targets, response_model=TargetList)
        router.add_api_route(
            "/v1/targets/{name}", self.put_target, methods=["PUT"], response_model=Target,
            responses=problem_answers(400, 409, 413, 422, 503),
        )  # fmt: skip
        router.add_api_route(
            "/v1/targets/{name}", self.remove_target, methods=["DELETE"], status_code=204,
            response_class=Response, responses=problem_answers(404, 422, 503),
        )  # fmt: skip

    async def secrets(self, caller: Caller) -> SecretList:
        """The secrets of the workspace: names, who set them and when; never a value."""
        rows = await self._premises.vault.entries(caller.workspace)
        return SecretList(secrets=[_secret(row) for row in rows])

    async def put_secret(
        self, request: Request, caller: Caller, name: Name, body: SecretRequest
    ) -> Secret:
        """Set a secret of the workspace, new or in the place of an old one."""
        row = await self._premises.vault.put(caller.workspace, name, body.value, caller.user)
        await self._note(request, caller, "secret.set", name, caller.workspace)
        return _secret(row)

    async def remove_secret(self, request: Request, caller: Caller, name: Name) -> Response:
        """Forget a secret; jobs that name it fail when they are claimed."""
        await self._premises.vault.remove(caller.workspace, name)
        await self._note(request, caller, "secret.remove", name, caller.workspace)
        return Response(status_code=204)

    async def rotate(self, request: Request, caller: Caller) -> Rotation:
        """Seal the secrets of all workspaces with a new key, and forget the old ones."""
        count = await self._premises.vault.rotate()
        await self._note(request, caller, "secret.rotate", str(count), None)
        return Rotation(resealed=count)

    async def targets(self, caller: Caller) -> TargetList:
        """The registered targets of the workspace; for an administrator, all."""
        registry = self._premises.targets
        if caller.administrator:
            return TargetList(targets=[target_view(row) for row in registry.all()])
        rows = registry.of(caller.workspace)
        return TargetList(targets=[target_view(row, caller.workspace) for row in rows])

    async def put_target(
        self, request: Request, caller: Caller, name: Name, body: TargetRequest
    ) -> Target:
        """Register a target, or change it."""
        await self._check_workspaces(body.workspaces)
        row = await self._premises.targets.put(name, body, caller.user)
        await self._note(request, caller, "target.set", name, None)
        return target_view(row)

    async def remove_target(self, request: Request, caller: Caller, name: Name) -> Response:
        """Forget a target; jobs that wait for it fail when they are claimed."""
        await self._premises.targets.remove(name)
        await self._note(request, caller, "target.remove", name, None)
        return Response(status_code=204)

    async def overlay(self, caller: Caller, workspace: WorkspaceName) -> Overlay:
        """What the workspace gives to all of its jobs."""
        _check_own(caller, workspace)
        return _overlay(self._premises.overlays.of(workspace))

    async def put_overlay(
        self, request: Request, caller: Caller, workspace: WorkspaceName, body: OverlayRequest
    ) -> Overlay:
        """Replace what the workspace gives to all of its jobs, from now on."""
        _check_own(caller, workspace)
        row = await self._premises.overlays.put(workspace, body.env, body.config, caller.user)
        await self._note(request, caller, "overlay.set", workspace, workspace)
        return _overlay(row)

    async def _check_workspaces(self, names: Sequence[str]) -> None:
        """Refuse a misspelt workspace, whose members would look for the target in vain."""
        if self._accounts is None:
            return
        known = {each.name for each in await self._accounts.workspaces()}
        problems = [
            FieldProblem(path=f"workspaces.{index}", message=f"there is no workspace {name!r}")
            for index, name in enumerate(names)
            if name not in known
        ]
        if problems:
            text = "the target cannot be registered; see the fields"
            raise Refusal(422, text, errors=problems[:MAX_FIELD_PROBLEMS])

    async def _note(
        self, request: Request, caller: Identity, action: str, subject: str, workspace: str | None
    ) -> None:
        """Write to the audit log who did it."""
        if self._accounts is None:
            return
        address = None if request.client is None else request.client.host
        act = Act(user=caller.user, via=caller.via, token_id=caller.token_id, address=address)
        event = AuditEvent(act=act, action=action, subject=subject, workspace=workspace)
        await self._accounts.audit([event])


def target_view(row: TargetRow, workspace: str | None = None) -> Target:
    """A target as a client sees it; with `workspace`, no other is named."""
    return Target(
        name=row.name,
        url=row.url,
        reach=_REACHES[row.reach],
        workspaces=list(row.workspaces) if workspace is None else [workspace],
        max_rate_per_s=row.max_rate_per_s,
        max_streams=row.max_streams,
        lock_group=row.lock_group,
        health_path=row.health_path,
        secret=row.secret,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )


def _check_own(caller: Identity, workspace: str) -> None:
    """Another's workspace is answered for as if it did not exist.

    Raises:
        Refusal: 404.
    """
    if workspace != caller.workspace and not caller.administrator:
        raise Refusal(404, f"there is no workspace {workspace!r}")


def _secret(row: SecretRow) -> Secret:
    return Secret(
        name=row.name,
        created_at=row.created_at,
        created_by=row.created_by,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )


def _overlay(row: OverlayRow) -> Overlay:
    return Overlay(
        workspace=row.workspace,
        env=dict(row.env),
        config={name: dict(values) for name, values in row.config.items()},
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )
