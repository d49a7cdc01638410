"""Tokens of a client: kept privately, sent only where they belong."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from headway.access.tokens import mint
from headway.client import Client
from headway.client.credentials import Credentials, Login, LoginFiles, find_credentials
from headway.core.errors import ConfigError

HERE = "http://127.0.0.1:8484"
TOKEN, OTHER = mint().text, mint().text


@pytest.fixture
def logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoginFiles:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TOKEN", "TOKEN_FILE", "WORKSPACE", "ALLOW_PLAIN_HTTP"):
        monkeypatch.delenv(f"HEADWAY_{name}", raising=False)
    return LoginFiles()


def test_a_login_is_kept_for_one_server_and_for_its_owner_only(logins: LoginFiles) -> None:
    path = logins.keep(Login(server=HERE, token=TOKEN, workspace="lab"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert find_credentials(HERE) == Credentials(TOKEN, "lab")
    for another in ("http://127.0.0.1:8485", "http://localhost:8484", "https://127.0.0.1:8484"):
        assert find_credentials(another) == Credentials()
    assert logins.forget(HERE)
    assert not logins.forget(HERE)
    assert find_credentials(HERE) == Credentials()


def test_a_login_that_others_can_read_is_not_used(logins: LoginFiles) -> None:
    path = logins.keep(Login(server=HERE, token=TOKEN))
    path.chmod(0o640)
    with pytest.raises(ConfigError, match=r"others may read the access token.*revoke it"):
        find_credentials(HERE)
    assert find_credentials(HERE, OTHER).token == OTHER  # given, so it is not looked at


def test_what_is_given_goes_before_the_environment_and_that_before_a_login(
    logins: LoginFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins.keep(Login(server=HERE, token=TOKEN, workspace="lab"))
    file = tmp_path / "token"
    file.write_text(f"{OTHER}\n")
    monkeypatch.setenv("HEADWAY_TOKEN_FILE", str(file))
    assert find_credentials(HERE).token == OTHER
    third = mint().text
    monkeypatch.setenv("HEADWAY_TOKEN", third)
    monkeypatch.setenv("HEADWAY_WORKSPACE", "shop")
    assert find_credentials(HERE) == Credentials(third, "shop")
    fourth = mint().text
    assert find_credentials(HERE, fourth, "home") == Credentials(fourth, "home")


def test_a_token_crosses_no_network_in_the_clear_unless_that_is_said(
    logins: LoginFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = "http://headway.example:8484"
    with pytest.raises(ConfigError, match="will not send an access token to http://headway") as no:
        find_credentials(away, TOKEN)
    assert TOKEN not in str(no.value)
    assert "HEADWAY_ALLOW_PLAIN_HTTP=1" in str(no.value)
    assert find_credentials(away) == Credentials()  # without a token there is nothing to see
    for safe in (HERE, "http://localhost:1", "http://[::1]:1", "https://headway.example"):
        assert find_credentials(safe, TOKEN).token == TOKEN
    for alike in ("http://127.0.0.1.example", "http://localhost.example", "http://0.0.0.0"):
        with pytest.raises(ConfigError, match="without TLS"):
            find_credentials(alike, TOKEN)
    assert find_credentials(away, TOKEN, plain_http=True).token == TOKEN
    monkeypatch.setenv("HEADWAY_ALLOW_PLAIN_HTTP", "1")
    assert find_credentials(away, TOKEN).token == TOKEN


@pytest.mark.parametrize(
    "text",
    ["hw_short", TOKEN + "x", TOKEN[:-1], "sk-123", f"{TOKEN}\r\nx: y"],
    # Named, because a token is made at random: every test process must find the same names.
    ids=["short", "too long", "cut", "of another kind", "with a line"],
)
def test_what_is_no_token_is_sent_nowhere_and_not_repeated(logins: LoginFiles, text: str) -> None:
    with pytest.raises(ConfigError, match="not a Headway access token") as no:
        find_credentials(HERE, text)
    assert text not in str(no.value)


def test_a_file_that_cannot_be_read_is_said(
    logins: LoginFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_TOKEN_FILE", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"cannot read the token in .*HEADWAY_TOKEN_FILE"):
        find_credentials(HERE)
    logins.keep(Login(server=HERE, token=TOKEN)).write_text("{")
    monkeypatch.delenv("HEADWAY_TOKEN_FILE")
    with pytest.raises(ConfigError, match="log in anew"):
        find_credentials(HERE)


def test_a_client_shows_its_token_in_no_text_of_its_own(logins: LoginFiles) -> None:
    secret = TOKEN.split("_")[2]
    with Client(HERE, token=TOKEN, workspace="lab") as client:
        headers = client._http.headers
        assert headers["authorization"] == f"Bearer {TOKEN}"
        assert headers["headway-workspace"] == "lab"
        for text in (repr(client), repr(client._http), repr(headers), repr(Credentials(TOKEN))):
            assert secret not in text
