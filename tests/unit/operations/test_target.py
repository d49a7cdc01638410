"""What a target is to the queue."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core.errors import ConfigError
from headway.load.spec import RunSpec
from headway.operations.target import MAX_KEY, BenchSettings, target_conditions, target_key


def spec(url: str, **parts: Any) -> RunSpec:
    return RunSpec.model_validate({"target": {"url": url}, **parts})


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000", "http://127.0.0.1:8000", "http://LOCALHOST:8000/",
        "http://127.0.0.1:8000/v1", "http://[::1]:8000/other/model",
    ],
)  # fmt: skip
def test_one_server_has_one_key_however_it_is_written(url: str) -> None:
    """N5, trap 53: two models behind one address share its GPUs."""
    assert target_key(spec(url)) == "target http://localhost:8000"


def test_other_servers_have_other_keys() -> None:
    keys = [
        target_key(spec(url))
        for url in (
            "http://gpu-1:8000", "http://gpu-2:8000", "http://gpu-1:8001", "https://gpu-1:8000",
            "https://api.example.com", "unix:///run/vllm.sock", "unix:///run/other.sock",
        )
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert target_key(spec("https://api.example.com:443/v1")) == "target https://api.example.com"
    assert target_key(spec("none:", backend={"kind": "null"})) == "target null"


def test_a_key_has_a_bound_and_stays_one_to_one() -> None:
    long = [target_key(spec(f"http://{'a' * 60}.{'b' * 60}.{'c' * 80}{n}:1")) for n in (1, 2)]
    assert all(len(key) <= MAX_KEY for key in long)
    assert long[0] != long[1]


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="URL"):
        target_key(spec("gpu-1:8000"))


def test_a_target_is_waited_for_at_its_health_page_and_any_answer_will_do() -> None:
    """J9: hosted services have no /health, servers behind a key answer 401: both are up."""
    [condition] = target_conditions(spec("http://gpu-1:8000/v1"), BenchSettings())
    assert condition.name == "target_healthy"
    assert condition.arguments["url"] == "http://gpu-1:8000/health"
    assert condition.arguments["any_answer"] is True
    assert condition.timeout_s == 1800
    plain = spec("http://gpu-1:8000/score", backend={"kind": "http"})
    assert target_conditions(plain, BenchSettings())[0].arguments["url"].endswith(":8000/score")


def test_what_cannot_be_asked_is_not_waited_for() -> None:
    settings = BenchSettings()
    assert target_conditions(spec("none:", backend={"kind": "null"}), settings) == []
    assert target_conditions(spec("unix:///run/vllm.sock"), settings) == []
    assert target_conditions(spec("http://gpu-1"), BenchSettings(target_wait_s=0)) == []
    proxied = RunSpec.model_validate({"target": {"url": "http://gpu-1", "proxy": "http://p:1"}})
    assert target_conditions(proxied, settings) == []


@pytest.mark.parametrize(
    ("tls", "verified"), [({}, True), ({"verify": False}, False), ({"ca_file": "/ca.pem"}, False)]
)
def test_the_question_verifies_the_certificate_as_far_as_it_can(
    tls: dict[str, Any], verified: bool
) -> None:
    run = RunSpec.model_validate({"target": {"url": "https://gpu-1", "tls": tls}})
    assert target_conditions(run, BenchSettings())[0].arguments["verify_tls"] is verified
