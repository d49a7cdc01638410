"""Who shows what is let in as whom, and random headers never (traps 13, 14)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from accounts import ACT, add_member, add_token, add_user, add_workspace, bearer_of, id_of
from hypothesis import example, given
from hypothesis import strategies as st

from headway.access.accounts import TokenKind
from headway.access.identity import LOCAL, Identity
from headway.access.roles import Role
from headway.access.throttle import FailureThrottle, ThrottleSettings
from headway.api.authenticator import KEPT_S, TokenAuthenticator
from headway.api.problems import Refusal
from headway.core.clock import ManualClock
from headway.core.statedir import StateDir
from headway.store.sqlite.store import SqliteStore

Raw = list[tuple[bytes, bytes]]
NOW = datetime(2026, 12, 1, tzinfo=UTC)


class House:
    """An authenticator over a real store; its calls run on a loop of its own."""

    def __init__(self, directory: Path) -> None:
        self.runner = asyncio.Runner()
        self.clock = ManualClock(NOW, monotonic_ns=10**12)
        self.store = SqliteStore(StateDir(directory), self.clock, random.Random(1))
        self.run(self.store.open())
        self.accounts = self.store.accounts
        self.new_authenticator()

    def new_authenticator(self) -> None:
        throttle = FailureThrottle(ThrottleSettings(burst=5, per_failure_s=60.0))
        self.authenticator = TokenAuthenticator(self.accounts, self.clock, throttle)

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    def close(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    def ask(self, headers: Raw, query: bytes = b"", address: str = "10.0.0.1") -> Identity:
        scope = {
            "type": "http", "method": "GET", "path": "/", "headers": headers,
            "query_string": query, "client": (address, 1), "scheme": "http",
        }  # fmt: skip
        identity: Identity = self.run(self.authenticator.identify(scope))
        return identity

    def ask_with(self, token: str, workspace: str | None = None, **more: Any) -> Identity:
        shown = bearer_of(token, workspace)
        return self.ask([(k.encode(), v.encode()) for k, v in shown.items()], **more)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "state")
    yield house
    house.close()


@pytest.fixture(scope="module")
def closed_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, str]]:
    house = House(tmp_path_factory.mktemp("house"))
    house.run(add_user(house.accounts, "root", administrator=True))
    yield house, house.run(add_token(house.accounts, "root"))
    house.close()


def refused(house: House, status: int, words: str, *args: Any, **more: Any) -> None:
    with pytest.raises(Refusal, match=words) as caught:
        house.ask_with(*args, **more)
    assert caught.value.status == status


def test_without_accounts_everybody_is_local_whatever_they_say(house: House) -> None:
    assert house.ask([]) == LOCAL
    assert house.ask([(b"authorization", b"Bearer root"), (b"x-user", b"root")]) == LOCAL
    refused(house, 404, "there is no workspace lab", "x", "lab")


def test_the_first_account_closes_the_server_for_good(house: House) -> None:
    assert house.ask([]) == LOCAL
    house.run(add_user(house.accounts, "ann"))
    house.authenticator.forget()
    with pytest.raises(Refusal) as caught:
        house.ask([])
    assert caught.value.status == 401
    assert "www-authenticate" in caught.value.headers
    house.run(house.accounts.remove_user("ann", ACT))
    house.new_authenticator()
    with pytest.raises(Refusal, match="asks for an access token"):
        house.ask([])


def test_a_token_makes_its_user_in_the_workspace_that_is_meant(house: House) -> None:
    accounts = house.accounts
    for name in ("lab", "shop"):
        house.run(add_workspace(accounts, name))
    token = house.run(add_member(accounts, "lab", "ann", Role.USER))
    one = house.ask_with(token)
    assert (one.user, one.workspace, one.role) == ("ann", "lab", Role.USER)
    assert (one.administrator, one.via, one.token_id) == (False, "token", id_of(token))
    house.run(accounts.set_member("shop", "ann", Role.VIEWER, ACT))
    house.authenticator.forget()
    assert house.ask_with(token).workspace == ""  # it has to say which
    assert house.ask_with(token, "shop").role is Role.VIEWER
    assert (
        house.ask([(b"authorization", f"Bearer {token}".encode())], b"workspace=lab").workspace
        == "lab"
    )
    refused(house, 404, "there is no workspace default", token, "default")
    refused(house, 404, "there is no workspace nowhere", token, "nowhere")
    refused(house, 404, "no workspace of that name", token, "<script>")


def test_a_token_can_be_limited_to_a_role_and_a_workspace(house: House) -> None:
    accounts = house.accounts
    house.run(add_workspace(accounts, "lab"))
    house.run(add_user(accounts, "root", administrator=True))
    whole = house.run(add_token(accounts, "root"))
    limited = house.run(add_token(accounts, "root", workspace="lab", role=Role.USER))
    assert house.ask_with(whole, "lab").administrator
    assert house.ask_with(whole, "lab").role is Role.ADMIN
    who = house.ask_with(limited)
    assert (who.workspace, who.role, who.administrator) == ("lab", Role.USER, False)
    refused(house, 404, "no workspace", limited, "default")


def test_expiry_and_revocation_count_at_once(house: House) -> None:
    accounts = house.accounts
    house.run(add_user(accounts, "ann"))
    soon = house.run(add_token(accounts, "ann", expires_at=NOW + timedelta(seconds=1)))
    token = house.run(add_token(accounts, "ann"))
    assert house.ask_with(soon).user == house.ask_with(token).user == "ann"
    house.clock.advance(1.0)
    refused(house, 401, "has expired", soon)
    house.run(accounts.revoke_token(id_of(token), ACT))
    house.authenticator.forget()
    refused(house, 401, "was revoked", token)


def test_what_another_process_changed_counts_within_seconds_without_a_ring(house: House) -> None:
    house.run(add_user(house.accounts, "ann"))
    token = house.run(add_token(house.accounts, "ann"))
    house.ask_with(token)
    house.run(house.accounts.remove_user("ann", ACT))
    house.clock.advance(KEPT_S)
    refused(house, 401, "was revoked", token)


def test_a_request_costs_no_look_at_the_store(house: House) -> None:
    house.run(add_user(house.accounts, "ann"))
    token = house.run(add_token(house.accounts, "ann"))
    house.ask_with(token)
    house.run(house.store.close())
    assert house.ask_with(token).user == "ann"
    assert set(house.authenticator.take_used()) == {id_of(token)}
    assert house.authenticator.take_used() == {}


def test_sessions_and_links_are_no_bearer_tokens(house: House) -> None:
    house.run(add_user(house.accounts, "ann"))
    for kind in (TokenKind.SESSION, TokenKind.LINK):
        refused(
            house, 401, "not for this use", house.run(add_token(house.accounts, "ann", kind=kind))
        )


def test_who_guesses_has_to_wait_and_nobody_else(house: House) -> None:
    house.run(add_user(house.accounts, "ann"))
    token = house.run(add_token(house.accounts, "ann"))
    other = house.run(add_token(house.accounts, "ann"))
    house.ask_with(token)
    for _ in range(5):
        refused(house, 401, "not one of this server's", "hw_wrong")
    with pytest.raises(Refusal) as caught:
        house.ask_with("hw_wrong")
    assert caught.value.status == 429
    assert 0 < int(caught.value.headers["retry-after"]) <= 60
    assert house.ask_with(token).user == "ann"  # known before, so no guess
    house.clock.advance(KEPT_S)
    house.authenticator.forget()
    assert house.ask_with(token).user == "ann"
    refused(house, 429, "try again later", other)
    assert house.ask_with(other, address="10.0.0.2").user == "ann"
    house.clock.advance(60.0)
    assert house.ask_with(other).user == "ann"


HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"authorization", b"headway-workspace", b"cookie", b"x-forwarded-user"]),
        st.binary(max_size=120)
        | st.binary(max_size=80).map(lambda raw: b"Bearer " + raw)
        | st.from_regex(
            rb"Bearer hw_[0-9a-hjkmnp-tv-z]{12}_[0-9a-hjkmnp-tv-z]{59}", fullmatch=True
        ),
    ),
    max_size=4,
)


@given(HEADERS, st.binary(max_size=40))
@example([(b"authorization", b"Bearer ")], b"workspace=%ff")
@example([(b"authorization", b"\xff\xfe"), (b"authorization", b"Bearer x")], b"workspace=")
def test_random_headers_never_pass_and_never_break(
    closed_house: tuple[House, str], headers: Raw, query: bytes
) -> None:
    house, _ = closed_house
    with pytest.raises(Refusal) as caught:
        house.ask(headers, query)
    assert caught.value.status in {401, 429}


@pytest.mark.parametrize(
    "form", ["basic {}", "Bearer {}x", "Bearer x{}", "{}", "Bearer\t{}", "Bearer, {}", "Bearer {},"]
)
def test_a_good_token_in_a_wrong_header_does_not_pass(
    closed_house: tuple[House, str], form: str
) -> None:
    house, token = closed_house
    house.new_authenticator()
    assert house.ask_with(token).user == "root"
    with pytest.raises(Refusal):
        house.ask([(b"authorization", form.format(token).encode())])
    twice = [(b"authorization", f"Bearer {token}".encode())] * 2
    with pytest.raises(Refusal):
        house.ask(twice)
    assert house.ask_with(token).user == "root"
