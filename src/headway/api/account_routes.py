"""Routes of users, workspaces and members, and of who one is."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from headway.access import accounts as values
from headway.access.identity import Identity
from headway.access.roles import Role
from headway.api.account_changes import act_by, check_new_name, done
from headway.api.account_views import me_view, member_view, user_view, workspace_view
from headway.api.entrance import Entrance
from headway.api.identity import Caller
from headway.api.problems import problem_answers
from headway.client.account_models import (
    Administrator,
    Me,
    Member,
    MemberList,
    NewRole,
    NewUser,
    NewWorkspace,
    User,
    UserList,
    Workspace,
    WorkspaceList,
)

Name = Annotated[str, Path(max_length=64, pattern=rf"^{values.NAME_PATTERN}$")]
_GONE: dict[int | str, dict[str, Any]] = {204: {"description": "It is gone."}}


class AccountRoutes:
    """`/v1/me`, `/v1/users`, `/v1/workspaces` and their members.

    Args:
        entrance: Has the accounts, and has to be told when they change.
    """

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance
        self._accounts = entrance.accounts

    def router(self) -> APIRouter:
        router = APIRouter(tags=["accounts"])
        answers = problem_answers(400, 401, 403, 404, 409, 422, 429, 503)
        add = router.add_api_route
        add("/v1/me", self.me, response_model=Me, responses=answers)
        add("/v1/users", self.users, response_model=UserList, responses=answers)
        add(
            "/v1/users", self.add_user, methods=["POST"], status_code=201, response_model=User,
            responses=answers,
        )  # fmt: skip
        add(
            "/v1/users/{user}/administrator", self.set_administrator, methods=["PUT"],
            response_model=User, responses=answers,
        )  # fmt: skip
        add(
            "/v1/users/{user}", self.remove_user, methods=["DELETE"], status_code=204,
            response_class=Response, responses={**_GONE, **answers},
        )  # fmt: skip
        self._add_workspaces(router)
        return router

    def _add_workspaces(self, router: APIRouter) -> None:
        answers = problem_answers(400, 401, 403, 404, 409, 422, 429, 503)
        add = router.add_api_route
        add("/v1/workspaces", self.workspaces, response_model=WorkspaceList, responses=answers)
        add(
            "/v1/workspaces", self.add_workspace, methods=["POST"], status_code=201,
            response_model=Workspace, responses=answers,
        )  # fmt: skip
        one = "/v1/workspaces/{workspace}"
        add(
            one, self.remove_workspace, methods=["DELETE"], status_code=204,
            response_class=Response, responses={**_GONE, **answers},
        )  # fmt: skip
        add(f"{one}/members", self.members, response_model=MemberList, responses=answers)
        add(
            f"{one}/members/{{user}}", self.set_member, methods=["PUT"], response_model=Member,
            responses=answers,
        )  # fmt: skip
        add(
            f"{one}/members/{{user}}", self.remove_member, methods=["DELETE"], status_code=204,
            response_class=Response, responses={**_GONE, **answers},
        )  # fmt: skip

    async def me(self, caller: Caller) -> Me:
        """Whom the server takes you for, and where you may work."""
        grant = None if caller.token_id is None else await self._accounts.grant(caller.token_id)
        return me_view(caller, grant)

    async def users(self, caller: Caller) -> UserList:
        """Every account."""
        return UserList(users=[user_view(user) for user in await self._accounts.users()])

    async def add_user(self, request: Request, caller: Caller, body: NewUser) -> User:
        """A new account; it is in no workspace and has no token yet."""
        act = act_by(caller, request)
        check_new_name(body.name)
        added = await self._accounts.add_user(
            body.name, body.administrator, act, returning=body.returning
        )
        return user_view(done(added))

    async def set_administrator(
        self, request: Request, caller: Caller, user: Name, body: Administrator
    ) -> User:
        """Let a user manage the server, or no more."""
        act = act_by(caller, request)
        changed = await self._accounts.set_administrator(user, body.administrator, act)
        self._entrance.changed()
        return user_view(done(changed))

    async def remove_user(self, request: Request, caller: Caller, user: Name) -> Response:
        """Remove an account: its tokens are revoked at once, its waiting jobs will fail."""
        done(await self._accounts.remove_user(user, act_by(caller, request)))
        self._entrance.changed()
        return Response(status_code=204)

    async def workspaces(self, caller: Caller) -> WorkspaceList:
        """The workspaces that you are in; an administrator is in all."""
        found = await self._accounts.workspaces()
        own = await self._own(caller)
        return WorkspaceList(
            workspaces=[workspace_view(each) for each in found if each.name in own]
        )

    async def add_workspace(
        self, request: Request, caller: Caller, body: NewWorkspace
    ) -> Workspace:
        """A new workspace, without members."""
        added = done(await self._accounts.add_workspace(body.name, act_by(caller, request)))
        self._entrance.changed()
        return workspace_view(added)

    async def remove_workspace(self, request: Request, caller: Caller, workspace: Name) -> Response:
        """Delete a workspace: nobody sees its jobs any more, and those that wait will fail."""
        done(await self._accounts.remove_workspace(workspace, act_by(caller, request)))
        self._entrance.changed()
        return Response(status_code=204)

    async def members(self, caller: Caller, workspace: Name) -> MemberList:
        """Who is in the workspace, and as what."""
        found = await self._accounts.members(workspace)
        return MemberList(members=[member_view(member) for member in found])

    async def set_member(
        self, request: Request, caller: Caller, workspace: Name, user: Name, body: NewRole
    ) -> Member:
        """Let a user into the workspace, or give it another role there."""
        act, role = act_by(caller, request), Role(body.role)
        changed = await self._accounts.set_member(workspace, user, role, act)
        self._entrance.changed()
        return member_view(done(changed))

    async def remove_member(
        self, request: Request, caller: Caller, workspace: Name, user: Name
    ) -> Response:
        """Remove a member: its streams end at once, its waiting jobs will fail."""
        done(await self._accounts.remove_member(workspace, user, act_by(caller, request)))
        self._entrance.changed()
        return Response(status_code=204)

    async def _own(self, caller: Identity) -> set[str]:
        if caller.token_id is None:
            return {caller.workspace}
        grant = await self._accounts.grant(caller.token_id)
        return set() if grant is None else set(grant.workspaces)
