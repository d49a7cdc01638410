"""Routes under `/v1/limits`: limits of workspaces and users, weights, and locks (J25, N5)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from headway.access.accounts import AuditEvent
from headway.access.identity import Identity
from headway.api.audit_trail import act_of
from headway.api.identity import Caller
from headway.api.problems import Refusal, problem_answers
from headway.client.limit_models import (
    Limit,
    LimitPage,
    LimitRequest,
    Lock,
    LockList,
    LockRequest,
    Use,
)
from headway.client.models import FieldProblem, ShortText
from headway.dispatch.doorbell import WORK, Doorbell
from headway.store import limits as stored
from headway.store.accounts import AccountStore

_WORKSPACE = "/v1/limits/workspaces/{workspace}"
_USER = "/v1/limits/workspaces/{workspace}/users/{user}"
_EVERY_WORKSPACE = "/v1/limits/every-workspace"
_EVERY_USER = "/v1/limits/every-user"
_LOCKS = "/v1/limits/locks"
_NAME = r"^(\*|[a-z0-9:][a-z0-9:._@-]{0,99})$"

WorkspaceName = Annotated[str, Path(min_length=1, max_length=200)]
UserName = Annotated[
    str, Path(pattern=_NAME, description="A user; `*`: each that has no limit of its own.")
]


class LimitRoutes:
    """Shows and changes limits; what is changed holds from the next claim and submission on.

    Args:
        limits: Keeps them.
        doorbell: Rung after a change: jobs may be free to start.
        accounts: Has the audit log; None: there is none.
        queue: What may wait of all workspaces together, to be shown.
    """

    def __init__(
        self,
        limits: stored.LimitStore,
        doorbell: Doorbell,
        accounts: AccountStore | None,
        queue: stored.QueueLimits,
    ) -> None:
        self._limits = limits
        self._doorbell = doorbell
        self._accounts = accounts
        self._queue = queue

    def router(self) -> APIRouter:
        router = APIRouter(tags=["limits"])
        changed = problem_answers(400, 403, 413, 422, 503)
        self._add(router, "/v1/limits", self.show, LimitPage, problem_answers(503))
        of_workspace = problem_answers(400, 403, 404, 413, 422, 503)
        self._add(router, _WORKSPACE, self.set_workspace, Limit, of_workspace, methods=["PUT"])
        self._add(router, _USER, self.set_user, Limit, of_workspace, methods=["PUT"])
        every_workspace = self.set_every_workspace
        self._add(router, _EVERY_WORKSPACE, every_workspace, Limit, changed, methods=["PUT"])
        self._add(router, _EVERY_USER, self.set_every_user, Limit, changed, methods=["PUT"])
        self._add(router, _LOCKS, self.locks, LockList, problem_answers(503))
        self._add(router, _LOCKS, self.set_lock, Lock, changed, methods=["PUT"])
        router.add_api_route(
            _LOCKS, self.remove_lock, methods=["DELETE"], status_code=204,
            response_class=Response, responses=problem_answers(403, 404, 422, 503),
        )  # fmt: skip
        return router

    @staticmethod
    def _add(
        router: APIRouter, path: str, endpoint: Any, model: Any, answers: Any, **options: Any
    ) -> None:
        router.add_api_route(path, endpoint, response_model=model, responses=answers, **options)

    async def show(self, caller: Caller) -> LimitPage:
        """The limits of the workspace and its use of the server; all, for an administrator."""
        workspace = None if caller.administrator else caller.workspace
        shown = (None, workspace, stored.EVERY) if workspace else None
        return LimitPage(
            limits=[
                _view(each)
                for each in await self._limits.all()
                if shown is None or each.workspace in shown
            ],
            use=[
                Use(
                    workspace=each.workspace,
                    user=each.user,
                    running=each.running,
                    waiting=each.waiting,
                )
                for each in await self._limits.use(workspace)
            ],
            max_queued=self._queue.jobs,
            max_queued_bytes=self._queue.size_bytes,
        )

    async def set_workspace(
        self, request: Request, caller: Caller, workspace: WorkspaceName, body: LimitRequest
    ) -> Limit:
        """Set the limits and the weight of a workspace; `{}` removes them."""
        return await self._set(request, caller, workspace, stored.WHOLE, body)

    async def set_user(
        self,
        request: Request,
        caller: Caller,
        workspace: WorkspaceName,
        user: UserName,
        body: LimitRequest,
    ) -> Limit:
        """Set the limits of a user in a workspace, or of each user (`*`); `{}` removes them."""
        if not caller.administrator and workspace != caller.workspace:
            raise Refusal(404, f"there is no workspace {workspace!r}")
        _check_weightless(body)
        return await self._set(request, caller, workspace, user, body)

    async def set_every_workspace(
        self, request: Request, caller: Caller, body: LimitRequest
    ) -> Limit:
        """Set the limits of each workspace that has none of its own; `{}` removes them."""
        return await self._set(request, caller, stored.EVERY, stored.WHOLE, body)

    async def set_every_user(self, request: Request, caller: Caller, body: LimitRequest) -> Limit:
        """Set the limits of each user, wherever it has none of its own; `{}` removes them."""
        _check_weightless(body)
        return await self._set(request, caller, stored.EVERY, stored.EVERY, body)

    async def locks(self, caller: Caller) -> LockList:
        """Every lock with its places and its members."""
        return LockList(locks=[_lock_view(each) for each in await self._limits.locks()])

    async def set_lock(self, request: Request, caller: Caller, body: LockRequest) -> Lock:
        """Set up a lock, or change it: jobs of all its members' keys share its places."""
        lock = stored.Lock(
            name=body.name, max_running=body.max_running, members=tuple(dict.fromkeys(body.members))
        )
        await self._limits.set_lock(lock)
        await self._changed(request, caller, "lock.set", lock.name, None)
        return _lock_view(lock)

    async def remove_lock(
        self, request: Request, caller: Caller, name: Annotated[ShortText, Query()]
    ) -> Response:
        """Make each of the lock's members a lock of its own again, with one place."""
        if not await self._limits.remove_lock(name):
            raise Refusal(404, f"there is no lock {name!r}")
        await self._changed(request, caller, "lock.remove", name, None)
        return Response(status_code=204)

    async def _set(
        self, request: Request, caller: Identity, workspace: str, user: str, body: LimitRequest
    ) -> Limit:
        limit = stored.Limit(
            workspace=workspace,
            user=user,
            max_running=body.max_running,
            max_queued=body.max_queued,
            weight=body.weight,
        )
        await self._limits.set(limit)
        subject = workspace if user == stored.WHOLE else f"{workspace}/{user}"
        where = None if workspace == stored.EVERY else workspace
        await self._changed(request, caller, "limit.set", subject, where)
        return _view(limit)

    async def _changed(
        self, request: Request, caller: Identity, action: str, subject: str, workspace: str | None
    ) -> None:
        self._doorbell.ring(WORK)
        if self._accounts is None:
            return
        act = act_of(caller, None if request.client is None else request.client.host)
        event = AuditEvent(act=act, action=action, subject=subject, workspace=workspace)
        await self._accounts.audit([event])


def _check_weightless(body: LimitRequest) -> None:
    if body.weight is not None:
        problem = FieldProblem(path="weight", message="only workspaces have a weight")
        raise Refusal(422, "the request cannot be used as it is", errors=[problem])


def _view(limit: stored.Limit) -> Limit:
    return Limit(
        workspace=limit.workspace,
        user=None if limit.user == stored.WHOLE else limit.user,
        max_running=limit.max_running,
        max_queued=limit.max_queued,
        weight=limit.weight,
    )


def _lock_view(lock: stored.Lock) -> Lock:
    return Lock(name=lock.name, max_running=lock.max_running, members=list(lock.members))
