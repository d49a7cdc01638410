"""N5: forged answers of a provider, and names there that look like another's here."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from accounts import ACT

pytest.importorskip("joserfc", reason="needs headway[oidc]")

from headway.access.roles import Role
from headway.api.oidc_accounts import OidcAccounts
from headway.api.oidc_client import LoginFailed, OidcClient
from headway.api.oidc_settings import GroupRole, OidcSettings
from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.store.accounts import AccountStore
from headway.store.sqlite.store import SqliteStore

REDIRECT = "https://bench.example/login/oidc/callback"


class _Description(BaseHTTPRequestHandler):
    """A provider that only describes itself."""

    def do_GET(self) -> None:
        issuer = f"http://{self.headers['host']}"
        described = {"issuer": issuer, "authorization_endpoint": f"{issuer}/authorize"}
        body = json.dumps(described).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def issuer() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Description)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
async def accounts(tmp_path: Path) -> AsyncIterator[AccountStore]:
    state_dir = StateDir(tmp_path / "state")
    state_dir.create()
    store = SqliteStore(state_dir, SystemClock(), random.Random(1))
    await store.open()
    yield store.accounts
    await store.close()


def settings(issuer: str = "https://provider.example") -> OidcSettings:
    ring = GroupRole(group="gpu", workspace="default", role=Role.USER)
    return OidcSettings(
        issuer=issuer,
        client_id="headway",
        groups=(ring,),
        user_claim="preferred_username",
        create_users=True,
    )


@pytest.mark.parametrize("state", ["é", "\ud800", "", "\0", "x" * 8000])
async def test_a_forged_state_is_refused_whatever_is_in_it(issuer: str, state: str) -> None:
    """Anybody may begin a login and come back with what it likes: that is no error of ours."""
    client = OidcClient(settings(issuer), SystemClock())
    login = await client.begin(REDIRECT, "/jobs")
    with pytest.raises(LoginFailed, match="another login"):
        await client.finish(login.ticket, {"state": state, "code": "c"})


@pytest.mark.parametrize("ticket", ["é", "", "\0", "gAAAAA", "x" * 8000])
async def test_a_forged_ticket_is_refused_whatever_is_in_it(issuer: str, ticket: str) -> None:
    client = OidcClient(settings(issuer), SystemClock())
    with pytest.raises(LoginFailed, match="not begun in this browser"):
        await client.finish(ticket, {"state": "s", "code": "c"})


async def test_who_was_removed_here_is_not_let_in_again_by_the_provider(
    accounts: AccountStore,
) -> None:
    people = OidcAccounts(accounts, settings())
    claims = {"preferred_username": "mike", "groups": ["gpu"]}
    await people.admit(claims, "127.0.0.1")
    await accounts.remove_user("mike", ACT)
    with pytest.raises(LoginFailed, match="users add mike --returning"):
        await people.admit(claims, "127.0.0.1")
    await accounts.add_user("mike", False, ACT, returning=True)
    assert (await people.admit(claims, "127.0.0.1")).name == "mike"


@pytest.mark.parametrize("name", ["mi\N{KELVIN SIGN}e", "mi\N{FULLWIDTH LATIN SMALL LETTER K}e"])
async def test_a_name_that_becomes_another_s_in_lower_case_is_not_that_one(
    accounts: AccountStore, name: str
) -> None:
    people = OidcAccounts(accounts, settings())
    mike = await people.admit({"preferred_username": "Mike", "groups": ["gpu"]}, "127.0.0.1")
    assert mike.name == "mike"
    with pytest.raises(LoginFailed, match="not usable as a name"):
        await people.admit({"preferred_username": name, "groups": ["gpu"]}, "127.0.0.1")
