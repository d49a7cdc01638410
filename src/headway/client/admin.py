"""The calls of accounts: `client.perform(admin.add_user("ann"))`, for either client."""

from __future__ import annotations

from headway.client.account_models import (
    Administrator,
    AuditPage,
    IssuedToken,
    Me,
    Member,
    MemberList,
    MemberRole,
    NewRole,
    NewServiceToken,
    NewToken,
    NewUser,
    NewWorkspace,
    TokenList,
    User,
    UserList,
    Workspace,
    WorkspaceList,
)
from headway.client.asking import Ask, checked, delete, get, path_of, post, put

_USER = "/v1/users/{user}"
_WORKSPACE = "/v1/workspaces/{workspace}"


def me() -> Ask[Me]:
    """Whom the server takes this client for."""
    return get("/v1/me", Me)


def users() -> Ask[UserList]:
    """Every account."""
    return get("/v1/users", UserList)


def add_user(name: str, *, administrator: bool = False, returning: bool = False) -> Ask[User]:
    """A new account, or that of a removed user again; in no workspace and without a token."""
    body = checked(NewUser, name=name, administrator=administrator, returning=returning)
    return post("/v1/users", body, User)


def set_administrator(name: str, administrator: bool) -> Ask[User]:
    """Let a user manage the server, or no more."""
    body = Administrator(administrator=administrator)
    return put(path_of(f"{_USER}/administrator", user=name), body, User)


def remove_user(name: str) -> Ask[None]:
    """Remove an account and revoke its tokens."""
    return delete(path_of(_USER, user=name))


def workspaces() -> Ask[WorkspaceList]:
    """The workspaces that this client may name."""
    return get("/v1/workspaces", WorkspaceList)


def add_workspace(name: str) -> Ask[Workspace]:
    """A new workspace, without members."""
    return post("/v1/workspaces", checked(NewWorkspace, name=name), Workspace)


def remove_workspace(name: str) -> Ask[None]:
    """Delete a workspace; its name is not given out again."""
    return delete(path_of(_WORKSPACE, workspace=name))


def members(workspace: str) -> Ask[MemberList]:
    """Who is in a workspace."""
    return get(path_of(f"{_WORKSPACE}/members", workspace=workspace), MemberList)


def set_member(workspace: str, user: str, role: MemberRole) -> Ask[Member]:
    """Let a user into a workspace, or give it another role there."""
    path = path_of(f"{_WORKSPACE}/members/{{user}}", workspace=workspace, user=user)
    return put(path, NewRole(role=role), Member)


def remove_member(workspace: str, user: str) -> Ask[None]:
    """Remove a member from a workspace."""
    return delete(path_of(f"{_WORKSPACE}/members/{{user}}", workspace=workspace, user=user))


def tokens(*, everybody: bool = False) -> Ask[TokenList]:
    """One's own tokens, or for administrators everybody's."""
    return get("/v1/tokens", TokenList, [("all", "true")] if everybody else ())


def issue_token(new: NewToken) -> Ask[IssuedToken]:
    """A new token, shown this once."""
    return post("/v1/tokens", new, IssuedToken)


def revoke_token(token_id: str) -> Ask[None]:
    """Revoke a token at once."""
    return delete(path_of("/v1/tokens/{token}", token=token_id))


def service_tokens(workspace: str) -> Ask[TokenList]:
    """The service tokens of a workspace."""
    return get(path_of(f"{_WORKSPACE}/tokens", workspace=workspace), TokenList)


def issue_service_token(workspace: str, new: NewServiceToken) -> Ask[IssuedToken]:
    """A new service token of a workspace, shown this once."""
    return post(path_of(f"{_WORKSPACE}/tokens", workspace=workspace), new, IssuedToken)


def revoke_service_token(workspace: str, token_id: str) -> Ask[None]:
    """Revoke a service token at once."""
    path = path_of(f"{_WORKSPACE}/tokens/{{token}}", workspace=workspace, token=token_id)
    return delete(path)


def audit(
    *,
    before: int | None = None,
    limit: int | None = None,
    workspace: str | None = None,
    action: str | None = None,
) -> Ask[AuditPage]:
    """A page of the audit log, newest first."""
    asked = (("before", before), ("limit", limit), ("of", workspace), ("action", action))
    query = [(name, str(value)) for name, value in asked if value is not None]
    return get("/v1/audit", AuditPage, query)
