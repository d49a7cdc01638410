"""No secret travels into a job's row: the run names where it is kept, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from headway.backends.endpoint import Endpoint
from headway.core.errors import ConfigError
from headway.load.provenance import public_spec
from headway.load.spec import RunSpec
from headway.operations.secrets import check_no_secrets, secret_names, with_values

URL = "http://127.0.0.1:8000"


def run_of(target: dict[str, Any], **rest: Any) -> RunSpec:
    return RunSpec.model_validate({"target": {"url": URL, **target}, **rest})


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (run_of({"headers": {"Authorization": "Bearer s3cret"}}), "header Authorization"),
        (run_of({"headers": {"X-Api-Key": "s3cret"}}), "header X-Api-Key"),
        (run_of({"url": "http://me:s3cret@127.0.0.1:8000"}), "target's URL"),
        (run_of({"proxy": "http://me:s3cret@127.0.0.1:3128"}), "proxy's URL"),
        (
            run_of({}, backend={"kind": "http", "headers": {"Cookie": "id=s3cret"}}),
            "backend's header Cookie",
        ),
    ],
)
def test_a_run_that_holds_a_secret_is_refused_without_repeating_it(
    spec: RunSpec, field: str
) -> None:
    with pytest.raises(ConfigError, match=field) as refusal:
        check_no_secrets(spec)
    assert "s3cret" not in str(refusal.value)


def test_a_run_that_names_where_its_key_is_kept_is_taken() -> None:
    check_no_secrets(run_of({"api_key_env": "TARGET_KEY", "headers": {"X-Team": "blue"}}))


def test_secrets_are_named_and_put_in_place_for_the_attempt_only() -> None:
    spec = run_of(
        {"api_key_secret": "key", "headers": {"X-Team": "secret:team", "X-Plain": "blue"}},
        backend={"kind": "http", "headers": {"Cookie": "secret:cookie"}},
    )
    check_no_secrets(spec)
    assert secret_names(spec) == ("team", "cookie", "key")
    values = {"key": "k3y-k3y-k3y", "team": "t3am-t3am", "cookie": "id=c00kie"}
    filled = with_values(spec, values.__getitem__)
    assert filled.target.headers == {
        "Authorization": "Bearer k3y-k3y-k3y",
        "X-Team": "t3am-t3am",
        "X-Plain": "blue",
    }
    assert not any(value in str(public_spec(filled)) for value in values.values())
    assert public_spec(filled)["target"]["headers"]["X-Plain"] == "blue"
    endpoint = Endpoint(filled.target)
    said = endpoint.redactor.redact("no access with k3y-k3y-k3y of t3am-t3am")
    assert said == "no access with *** of ***"


def test_a_secret_by_name_is_refused_where_no_server_puts_it_in_place() -> None:
    for target in ({"api_key_secret": "key"}, {"headers": {"X-Key": "secret:key"}}):
        with pytest.raises(ConfigError, match="--api-key-env"):
            Endpoint(run_of(target).target)


@pytest.mark.parametrize("name", ["", "a b", "../x", "x" * 101])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="no name of a secret"):
        check_no_secrets(run_of({"headers": {"X-Key": f"secret:{name}"}}))
