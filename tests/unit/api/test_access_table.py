"""Every route, for everybody: who is let in and who is not (J11).

The table is kept by hand beside the policy's own, as in double-entry bookkeeping: a new route, or
another permission for an old one, has to be written down twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from accounts import add_member, add_token, add_user, add_workspace, bearer_of

from headway.access.accounts import TokenKind
from headway.access.policy import ROUTES
from headway.access.roles import Role
from headway.store.accounts import AccountStore

TABLE = {
    "anybody": """
        GET /healthz
        GET /readyz
        GET /
        GET /assets/{name}
        GET /login
        POST /login
        GET /login/link/{code}
        POST /login/link/{code}
        POST /logout
    """,
    "known": """
        GET /openapi.json
        GET /v1/me
        GET /v1/workspaces
        GET /v1/tokens
        POST /v1/tokens
        DELETE /v1/tokens/{token}
        POST /v1/login-links
        POST /workspace
    """,
    "viewer": """
        GET /v1/operations
        GET /v1/operations/{name}
        GET /v1/jobs
        GET /v1/jobs/stream
        GET /v1/jobs/{job_id}
        GET /v1/jobs/{job_id}/events
        GET /v1/jobs/{job_id}/why
        GET /v1/jobs/{job_id}/progress
        GET /v1/jobs/{job_id}/trace
        GET /v1/jobs/{job_id}/result
        GET /v1/jobs/{job_id}/logs
        GET /v1/jobs/{job_id}/logs/stream
        GET /v1/jobs/{job_id}/artifacts
        GET /v1/jobs/{job_id}/artifacts/{name:path}
        GET /v1/workspaces/{workspace}/members
        GET /v1/workspaces/{workspace}/overlay
        GET /v1/secrets
        GET /v1/targets
        GET /v1/limits
        GET /jobs
        GET /jobs/{job_id}
        GET /targets
        GET /compare
    """,
    "user": """
        POST /v1/operations/{name}
        POST /v1/jobs:batch
        POST /v1/jobs/{job_id}/cancel
        POST /v1/jobs/{job_id}/retry
        POST /jobs/{job_id}/cancel
        POST /jobs/{job_id}/retry
        GET /runs/new
        POST /runs/new
    """,
    "admin": """
        PUT /v1/workspaces/{workspace}/members/{user}
        DELETE /v1/workspaces/{workspace}/members/{user}
        GET /v1/workspaces/{workspace}/tokens
        POST /v1/workspaces/{workspace}/tokens
        DELETE /v1/workspaces/{workspace}/tokens/{token}
        PUT /v1/workspaces/{workspace}/overlay
        PUT /v1/limits/workspaces/{workspace}/users/{user}
        PUT /v1/secrets/{name}
        DELETE /v1/secrets/{name}
    """,
    "scraper": """
        GET /metrics
    """,
    "administrator": """
        GET /v1/users
        POST /v1/users
        DELETE /v1/users/{user}
        PUT /v1/users/{user}/administrator
        POST /v1/workspaces
        DELETE /v1/workspaces/{workspace}
        GET /v1/audit
        POST /v1/secrets:rotate
        PUT /v1/limits/workspaces/{workspace}
        PUT /v1/limits/every-workspace
        PUT /v1/limits/every-user
        GET /v1/limits/locks
        PUT /v1/limits/locks
        DELETE /v1/limits/locks
        PUT /v1/targets/{name}
        DELETE /v1/targets/{name}
    """,
}
"""What each route asks for."""
NEEDED = {tuple(line.split()): level for level, lines in TABLE.items() for line in lines.splitlines() if line.strip()}  # fmt: skip  # noqa: E501


@dataclass(frozen=True)
class Actor:
    """Somebody who tries everything in the workspace `a`; `denied` is what it is answered."""

    headers: dict[str, str]
    has: frozenset[str]
    denied: frozenset[int]


def levels(*names: str) -> frozenset[str]:
    return frozenset({"anybody", *names})


async def make_actors(accounts: AccountStore) -> dict[str, Actor]:
    for name in ("a", "b", "spare"):
        await add_workspace(accounts, name)
    await add_user(accounts, "root", administrator=True)
    member = {
        role: await add_member(accounts, "a", f"{role}-of-a", role)
        for role in (Role.VIEWER, Role.USER, Role.ADMIN)
    }
    stranger = await add_member(accounts, "b", "stranger", Role.ADMIN)
    root = await add_token(accounts, "root")
    service = await add_token(
        accounts, kind=TokenKind.SERVICE, label="ci", workspace="a", role=Role.USER
    )
    scraper = await add_token(accounts, kind=TokenKind.METRICS, label="prometheus")
    modest = await add_token(accounts, "root", workspace="a", role=Role.VIEWER)
    session = await add_token(accounts, "root", kind=TokenKind.SESSION)
    forbidden, everything = frozenset({403}), frozenset(NEEDED.values())
    return {
        "nobody": Actor({}, levels(), frozenset({401})),
        "forger": Actor(bearer_of("hw_000000000000_" + "0" * 59), levels(), frozenset({401, 429})),
        "stranger": Actor(bearer_of(stranger, "a"), levels(), frozenset({404})),
        "viewer": Actor(bearer_of(member[Role.VIEWER], "a"), levels("known", "viewer"), forbidden),
        "user": Actor(
            bearer_of(member[Role.USER], "a"), levels("known", "viewer", "user"), forbidden
        ),
        "admin": Actor(
            bearer_of(member[Role.ADMIN], "a"),
            levels("known", "viewer", "user", "admin"),
            forbidden,
        ),
        "service": Actor(
            bearer_of(service, "a"), levels("known", "viewer", "user"), forbidden
        ),
        "modest": Actor(bearer_of(modest, "a"), levels("known", "viewer"), forbidden),
        "scraper": Actor(
            bearer_of(scraper), levels("known", "scraper"), frozenset({400, 403, 404})
        ),
        "thief": Actor(bearer_of(session), levels(), frozenset({401})),
        "administrator": Actor(bearer_of(root, "a"), everything, forbidden),
    }  # fmt: skip


def routes_of(app: Any) -> list[tuple[str, str]]:
    """Method and template of everything that the application answers."""
    found = set()
    for route in app.routes:
        path = route.path
        if path.startswith("/v1/operations/"):
            path = "/v1/operations/{name}"
        found |= {(method, path) for method in route.methods - {"HEAD"}}
    return sorted(found)


def address(template: str, job_id: str, workspace: str) -> str:
    names = {"/v1/operations": "nothing", "/assets": "page.js"}
    name = next((value for start, value in names.items() if template.startswith(start)), "absent")
    values = {
        "job_id": job_id, "workspace": workspace, "name": name, "user": "nobody",
        "token": "0" * 12, "code": "absent",
    }  # fmt: skip
    return re.sub(r"\{(\w+)(:path)?\}", lambda match: values[match[1]], template)


async def status_of(api: Any, method: str, path: str, headers: dict[str, str]) -> int:
    """The status alone: some of the answers never end."""
    page = not path.startswith("/v1/")
    content = {} if page else {"content-type": "application/json"}
    body = None if method in ("GET", "DELETE") else (b"" if page else b"{}")
    async with api.http.stream(
        method, path, headers={**content, **headers}, content=body
    ) as answer:
        return int(answer.status_code)


async def test_every_route_lets_in_whom_the_table_says(
    start_full_api: Any,
) -> None:
    wrong = []
    async with start_full_api() as api:
        actors = await make_actors(api.store.accounts)
        routes = routes_of(api.app)
        assert set(routes) - NEEDED.keys() == set(), "a new route needs a row in TABLE"
        assert NEEDED.keys() - set(routes) == set(), "a row for a route that is not there"
        api.entrance.changed()
        as_user = actors["user"].headers
        answer = await api.http.post("/v1/operations/nothing", json={}, headers=as_user)
        job_id = answer.json()["id"]
        await api.http.post(f"/v1/jobs/{job_id}/cancel", headers=as_user)  # its streams end
        for method, template in routes:
            for name, actor in actors.items():
                allowed = NEEDED[method, template] in actor.has
                gone = (method, template) == ("DELETE", "/v1/workspaces/{workspace}") and allowed
                path = address(template, job_id, "spare" if gone else "a")
                status = await status_of(api, method, path, actor.headers)
                # Whom the route itself refuses to sign in has been let in to try.
                tried = "/login" in template
                let_in = status < 500 and (tried or status not in {401, 403, 429})
                right = let_in if allowed else status in actor.denied
                if not right:
                    wrong.append(f"{method} {template} as {name}: {status}")
    assert wrong == []


async def test_the_policy_has_no_row_for_what_is_not_there(start_full_api: Any) -> None:
    async with start_full_api() as api:
        optional = {("GET", "/login/oidc"), ("GET", "/login/oidc/callback")}  # an extra
        assert ROUTES.keys() - set(routes_of(api.app)) - optional == set()


async def test_a_route_without_a_row_serves_nobody(start_full_api: Any) -> None:
    async def handler() -> str:
        return "in"

    async with start_full_api() as api:
        before = len(api.app.router.routes)
        api.app.add_api_route("/new", handler)
        api.entrance.gate.guard(api.app.router.routes[before:])
        answer = await api.http.get("/new")  # even to the one user of a server without accounts
        assert answer.status_code == 403
        assert "no place in the server's policy" in answer.json()["detail"]


async def test_what_is_elsewhere_is_answered_like_what_is_nowhere(start_full_api: Any) -> None:
    """J11: the same status, headers and words for another workspace's job and for none."""
    async with start_full_api() as api:
        actors = await make_actors(api.store.accounts)
        api.entrance.changed()
        sent = {**actors["user"].headers, "idempotency-key": "shared"}
        answer = await api.http.post(
            "/v1/operations/nothing", json={"labels": {"who": "a"}}, headers=sent
        )
        theirs = answer.json()["id"]
        stranger = {**actors["stranger"].headers, "headway-workspace": "b"}
        unknown = theirs[:-1] + ("0" if theirs[-1] != "0" else "1")
        for part in ("", "/events", "/why", "/progress", "/trace", "/result", "/logs",
                     "/logs/stream", "/artifacts", "/artifacts/x"):  # fmt: skip
            shown = []
            for job_id in (theirs, unknown):
                answer = await api.http.get(f"/v1/jobs/{job_id}{part}", headers=stranger)
                body = answer.json()
                body.pop("request_id")
                text = repr(body).replace(job_id, "ID")
                shown.append((answer.status_code, text, sorted(answer.headers)))
            assert shown[0] == shown[1]
            assert shown[0][0] == 404
        for action in ("cancel", "retry"):
            answer = await api.http.post(f"/v1/jobs/{theirs}/{action}", headers=stranger)
            assert answer.status_code == 404
        assert (await api.http.get("/v1/jobs", headers=stranger)).json()["jobs"] == []
        assert (await api.http.get(f"/jobs/{theirs}", headers=stranger)).status_code == 404
        assert theirs not in (await api.http.get("/jobs", headers=stranger)).text
        # The same idempotency key is another key in another workspace (trap 15).
        answer = await api.http.post(
            "/v1/operations/nothing", json={}, headers={**stranger, "idempotency-key": "shared"}
        )
        assert answer.status_code == 202
        assert answer.json()["id"] != theirs
