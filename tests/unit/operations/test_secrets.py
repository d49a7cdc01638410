"""No secret travels into a job's row: the run names where it is kept, or is refused."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core.errors import ConfigError
from headway.load.spec import RunSpec
from headway.operations.secrets import check_no_secrets

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
