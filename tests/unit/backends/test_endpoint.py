"""Paths, headers and keys of a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.backends.endpoint import Endpoint
from headway.backends.spec import TargetSpec
from headway.core.errors import ConfigError


@pytest.mark.parametrize(
    ("url", "api_path", "root_path"),
    [
        ("http://h:1", "/v1", ""),
        ("http://h:1/", "/v1", ""),
        ("http://h:1/v1", "/v1", ""),
        ("http://h:1/v1/", "/v1", ""),
        ("http://h:1/openai", "/openai/v1", "/openai"),
        ("http://h:1/openai/v1", "/openai/v1", "/openai"),
        ("http://h:1/v1beta", "/v1beta", ""),
    ],
)
def test_the_api_s_version_is_added_where_absent(url: str, api_path: str, root_path: str) -> None:
    endpoint = Endpoint(TargetSpec(url=url))
    assert (endpoint.api_path, endpoint.root_path) == (api_path, root_path)


def test_a_key_from_the_environment_becomes_a_hidden_header(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", " s3cret\n")
    endpoint = Endpoint(TargetSpec(url="http://h", api_key_env="MY_KEY"))
    assert endpoint.headers["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(endpoint.headers)
    assert endpoint.redactor.redact("s3cret") == "***"


def test_a_key_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret\n")
    endpoint = Endpoint(TargetSpec(url="http://h", api_key_file=tmp_path / "key"))
    assert endpoint.headers["Authorization"] == "Bearer s3cret"


def test_a_key_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        Endpoint(TargetSpec(url="http://h", api_key_env="MY_KEY"))
    with pytest.raises(ConfigError, match="cannot read the API key's file"):
        Endpoint(TargetSpec(url="http://h", api_key_file=tmp_path / "none"))
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigError, match="is empty"):
        Endpoint(TargetSpec(url="http://h", api_key_file=tmp_path / "empty"))


def test_the_user_s_headers_win_whatever_their_case() -> None:
    endpoint = Endpoint(TargetSpec(url="http://h", headers={"user-agent": "mine", "X-Org": "o"}))
    assert {"user-agent": "mine", "X-Org": "o"}.items() <= endpoint.headers.items()
    assert "User-Agent" not in endpoint.headers


async def test_a_header_that_http_does_not_allow_is_refused_at_startup() -> None:
    endpoint = Endpoint(TargetSpec(url="http://h", headers={"X": "a\nb"}))
    with pytest.raises(ConfigError, match="header X"):
        await endpoint.startup()
