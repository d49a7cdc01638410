"""Who may do what: all of it, in two tables.

`ROUTES` gives each route its permission, `is_allowed` says who has it. A route without a row is
refused to everybody, and a test fails. Inside a workspace there is no further distinction: whoever
may read one of its jobs may read all of them. What belongs to another workspace is answered as if
it did not exist; that is the business of `api/job_access.py`, which asks the store with the
caller's workspace only.
"""

from __future__ import annotations

from enum import StrEnum

from headway.access.identity import Identity
from headway.access.roles import Role


class Permission(StrEnum):
    """What a route asks for."""

    OPEN = "open"
    """Nothing: anybody may, without saying who it is."""
    KNOWN = "known"
    """Somebody whom the server knows, in whatever workspace or none."""
    READ = "read"
    """A viewer of the workspace."""
    RUN = "run"
    """A user of the workspace."""
    MANAGE = "manage"
    """An admin of the workspace."""
    SCRAPE = "scrape"
    """An administrator, or a token for metrics: the numbers are those of all workspaces."""
    ADMINISTER = "administer"
    """An administrator of the server."""


LEAST_ROLE = {
    Permission.READ: Role.VIEWER,
    Permission.RUN: Role.USER,
    Permission.MANAGE: Role.ADMIN,
}

ROUTES: dict[tuple[str, str], Permission] = {
    # health and description
    ("GET", "/healthz"): Permission.OPEN,
    ("GET", "/readyz"): Permission.OPEN,
    ("GET", "/metrics"): Permission.SCRAPE,
    ("GET", "/openapi.json"): Permission.KNOWN,
    # operations
    ("GET", "/v1/operations"): Permission.READ,
    ("GET", "/v1/operations/{name}"): Permission.READ,
    ("POST", "/v1/operations/{name}"): Permission.RUN,
    # jobs
    ("POST", "/v1/jobs:batch"): Permission.RUN,
    ("GET", "/v1/jobs"): Permission.READ,
    ("GET", "/v1/jobs/stream"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/events"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/why"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/progress"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/trace"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/result"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/logs"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/logs/stream"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/artifacts"): Permission.READ,
    ("GET", "/v1/jobs/{job_id}/artifacts/{name:path}"): Permission.READ,
    ("POST", "/v1/jobs/{job_id}/cancel"): Permission.RUN,
    ("POST", "/v1/jobs/{job_id}/retry"): Permission.RUN,
    # secrets, targets, overlays
    ("GET", "/v1/secrets"): Permission.READ,
    ("PUT", "/v1/secrets/{name}"): Permission.MANAGE,
    ("DELETE", "/v1/secrets/{name}"): Permission.MANAGE,
    ("POST", "/v1/secrets:rotate"): Permission.ADMINISTER,
    ("GET", "/v1/targets"): Permission.READ,
    ("PUT", "/v1/targets/{name}"): Permission.ADMINISTER,
    ("DELETE", "/v1/targets/{name}"): Permission.ADMINISTER,
    ("GET", "/v1/workspaces/{workspace}/overlay"): Permission.READ,
    ("PUT", "/v1/workspaces/{workspace}/overlay"): Permission.MANAGE,
    # limits and locks
    ("GET", "/v1/limits"): Permission.READ,
    ("PUT", "/v1/limits/workspaces/{workspace}"): Permission.ADMINISTER,
    ("PUT", "/v1/limits/workspaces/{workspace}/users/{user}"): Permission.MANAGE,
    ("PUT", "/v1/limits/every-workspace"): Permission.ADMINISTER,
    ("PUT", "/v1/limits/every-user"): Permission.ADMINISTER,
    ("GET", "/v1/limits/locks"): Permission.ADMINISTER,
    ("PUT", "/v1/limits/locks"): Permission.ADMINISTER,
    ("DELETE", "/v1/limits/locks"): Permission.ADMINISTER,
    # signing in: by whoever the server does not know yet
    ("GET", "/login"): Permission.OPEN,
    ("POST", "/login"): Permission.OPEN,
    ("GET", "/login/link/{code}"): Permission.OPEN,
    ("POST", "/login/link/{code}"): Permission.OPEN,
    ("GET", "/login/oidc"): Permission.OPEN,
    ("GET", "/login/oidc/callback"): Permission.OPEN,
    ("POST", "/logout"): Permission.OPEN,  # also with a session that is over
    ("POST", "/v1/login-links"): Permission.KNOWN,
    ("POST", "/workspace"): Permission.KNOWN,
    # accounts; a workspace in the path is the one whose role counts
    ("GET", "/v1/me"): Permission.KNOWN,
    ("GET", "/v1/users"): Permission.ADMINISTER,
    ("POST", "/v1/users"): Permission.ADMINISTER,
    ("DELETE", "/v1/users/{user}"): Permission.ADMINISTER,
    ("PUT", "/v1/users/{user}/administrator"): Permission.ADMINISTER,
    ("GET", "/v1/workspaces"): Permission.KNOWN,  # one's own
    ("POST", "/v1/workspaces"): Permission.ADMINISTER,
    ("DELETE", "/v1/workspaces/{workspace}"): Permission.ADMINISTER,
    ("GET", "/v1/workspaces/{workspace}/members"): Permission.READ,
    ("PUT", "/v1/workspaces/{workspace}/members/{user}"): Permission.MANAGE,
    ("DELETE", "/v1/workspaces/{workspace}/members/{user}"): Permission.MANAGE,
    ("GET", "/v1/workspaces/{workspace}/tokens"): Permission.MANAGE,
    ("POST", "/v1/workspaces/{workspace}/tokens"): Permission.MANAGE,
    ("DELETE", "/v1/workspaces/{workspace}/tokens/{token}"): Permission.MANAGE,
    ("GET", "/v1/tokens"): Permission.KNOWN,  # one's own
    ("POST", "/v1/tokens"): Permission.KNOWN,
    ("DELETE", "/v1/tokens/{token}"): Permission.KNOWN,
    ("GET", "/v1/audit"): Permission.ADMINISTER,
    # pages
    ("GET", "/"): Permission.OPEN,  # only says where to go on
    ("GET", "/assets/{name}"): Permission.OPEN,  # style and script, the same for everybody
    ("GET", "/jobs"): Permission.READ,
    ("GET", "/jobs/{job_id}"): Permission.READ,
    ("POST", "/jobs/{job_id}/cancel"): Permission.RUN,
    ("POST", "/jobs/{job_id}/retry"): Permission.RUN,
    ("GET", "/runs/new"): Permission.RUN,
    ("POST", "/runs/new"): Permission.RUN,
    ("GET", "/targets"): Permission.READ,
    ("GET", "/compare"): Permission.READ,
}

_SUBMIT = "/v1/operations/"


def permission_of(method: str, template: str) -> Permission | None:
    """What a route asks for; None: it has no row, and nobody may.

    Args:
        method: HEAD is what GET is.
        template: The path with its parameters in braces, as the route was declared.
    """
    if template.startswith(_SUBMIT):
        template = f"{_SUBMIT}{{name}}"  # each operation has a typed route of its own
    return ROUTES.get(("GET" if method == "HEAD" else method, template))


def is_allowed(identity: Identity, permission: Permission) -> bool:
    """Whether the caller has the permission, in the workspace that it is in."""
    match permission:
        case Permission.OPEN | Permission.KNOWN:
            return True
        case Permission.ADMINISTER:
            return identity.administrator
        case Permission.SCRAPE:
            return identity.administrator or identity.scraper
        case _:
            return identity.role.covers(LEAST_ROLE[permission])
