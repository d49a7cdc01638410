"""Aiming runs at registered targets: what leaves them or asks too much is refused (N5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.core.errors import ConfigError
from headway.jobs.target import Range, TargetGrant
from headway.load.arrivals import TraceArrivals
from headway.load.spec import RunSpec
from headway.load.stages import StagePlan
from headway.operations.aim import aim, pinned
from headway.operations.ceilings import Ceilings
from headway.operations.target import BenchSettings

OPEN = {"kind": "constant", "rate": [10], "cap": 8}


def grant(**changes: Any) -> TargetGrant:
    values: dict[str, Any] = {
        "name": "gpu-a", "url": "http://gpu-a:8000", "reach": "public", "lock_group": "node-1",
        "health_path": "/ready",
    }  # fmt: skip
    return TargetGrant(**{**values, **changes})


def run(url: str = "gpu-a", profile: dict[str, Any] | None = None, **rest: Any) -> RunSpec:
    target = {"url": url, **rest.pop("target", {})}
    spec = {"target": target, "profile": profile or OPEN, "limits": {"max_seconds": 1}, **rest}
    return RunSpec.model_validate(spec)


def within(*grants: TargetGrant, data_dir: Path | None = None, is_free: bool = False) -> Range:
    by_url = {each.url: each for each in grants}
    return Range(grants, data_dir, by_url.get, is_free)


def test_a_run_names_its_target_and_gets_its_lock_group_and_its_health_page() -> None:
    made = aim(run(), BenchSettings(target_wait_s=5), within(grant(secret="gpu-a-key")))
    assert made is not None
    assert made.target is not None
    assert made.target.name == "gpu-a"
    assert made.concurrency_key == "target node-1"
    [condition] = made.conditions
    assert condition.name == "target_healthy"
    assert condition.arguments == {"target": "gpu-a", "any_answer": True, "verify_tls": True}
    assert made.secrets == ("gpu-a-key",)


def test_a_run_with_a_key_of_its_own_needs_not_the_targets() -> None:
    spec = run(target={"api_key_secret": "mine"})
    made = aim(spec, BenchSettings(), within(grant(secret="gpu-a-key")))
    assert made is not None
    assert made.secrets == ()


def test_what_is_not_registered_is_refused_with_what_there_is() -> None:
    for url in ("gpu-b", "http://elsewhere:8000", "http://169.254.169.254/"):
        with pytest.raises(ConfigError, match="registered: gpu-a"):
            aim(run(url), BenchSettings(), within(grant()))


def test_a_server_of_ones_own_is_free_but_for_what_is_named() -> None:
    allowed = within(grant(max_streams=4), is_free=True)
    assert aim(run("http://anywhere:1"), BenchSettings(), allowed) is None
    with pytest.raises(ConfigError, match="4 are allowed"):
        aim(run(), BenchSettings(), allowed)


REFUSED = [
    ({"target": {"proxy": "http://proxy:3128"}}, "proxy"),
    ({"target": {"api_key_env": "HOME"}}, "environment"),
    ({"target": {"api_key_file": "/etc/shadow"}}, "files"),
    ({"target": {"headers": {"hOST": "internal"}}}, "Host"),
    ({"target": {"headers": {"Authorization": "Bearer s3cret-s3cret"}}}, "api-key-secret"),
    ({"target": {"tls": {"ca_file": "/etc/passwd"}}}, "reads no files"),
    ({"inputs": {"kind": "file", "path": "/etc/passwd"}}, "reads no files"),
    ({"backend": {"kind": "python", "function": "os:system"}}, "runs code"),
    ({"backend": {"kind": "http", "path": "/../admin", "body": "x"}}, "path"),
    ({"backend": {"kind": "http", "path": "/%2e%2e/admin", "body": "x"}}, "path"),
    ({"backend": {"kind": "http", "body": "x", "headers": {"Host": "internal"}}}, "Host"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "word"), REFUSED)
def test_what_could_lead_a_run_elsewhere_is_refused(part: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word) as refused:
        aim(run(**part), BenchSettings(), within(grant()))
    assert "s3cret" not in str(refused.value)


def test_files_are_read_in_the_data_directory_and_nowhere_else(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside.txt"
    data.mkdir()
    for path in (data / "prompts.txt", outside):
        path.write_text("one\n")
    (data / "link.txt").symlink_to(outside)
    allowed = within(grant(data_dir=str(data)), data_dir=data)

    def at(path: str) -> RunSpec:
        return run(inputs={"kind": "file", "path": path})

    assert aim(at(str(data / "prompts.txt")), BenchSettings(), allowed) is not None
    escapes = [str(outside), str(data / ".." / "outside.txt"), str(data / "link.txt"),
               "/proc/self/environ"]  # fmt: skip
    for path in escapes:
        with pytest.raises(ConfigError, match="is not in"):
            aim(at(path), BenchSettings(), allowed)
    with pytest.raises(ConfigError, match="no file"):
        aim(at(str(data / "absent.txt")), BenchSettings(), allowed)


TOO_MUCH = [
    ({"kind": "constant", "rate": [5, 21], "cap": 8}, "21 requests/s are asked for, 20"),
    ({"kind": "poisson", "rate": [20.5], "cap": 8}, "20.5 requests/s are asked for, 20"),
    ({"kind": "gamma", "rate": [30], "cv": 2, "cap": 8}, "30 requests/s"),
    ({"kind": "ramp", "rate_from": 25, "rate_to": 1, "duration_s": 5, "cap": 8}, "25 requests/s"),
    ({"kind": "constant", "rate": [10], "cap": 17}, "17 streams are asked for, 16"),
    ({"kind": "constant", "rate": [10]}, "no limit of streams is asked for, 16"),
    ({"kind": "concurrent", "streams": [1, 32]}, "32 streams"),
    ({"kind": "throughput", "cap": 64}, "64 streams"),
    ({"kind": "sweep", "saturation_streams": 16}, "a sweep finds its own rates"),
    ({"kind": "sweep", "saturation_streams": 128}, "128 streams"),
    ({"kind": "stages", "stages": [{"profile": OPEN},
        {"profile": {"kind": "constant", "rate": [99], "cap": 1}}]}, "99 requests/s"),
]  # fmt: skip


@pytest.mark.parametrize(("profile", "words"), TOO_MUCH)
def test_a_profile_that_asks_for_more_than_its_target_bears_is_refused_with_the_numbers(
    profile: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        aim(run(profile=profile), BenchSettings(), within(grant(max_rate_per_s=20, max_streams=16)))


@pytest.mark.parametrize(
    "profile",
    [
        {"kind": "constant", "rate": [20], "cap": 16},
        {"kind": "concurrent", "streams": [16]},
        {"kind": "synchronous"},
        {"kind": "throughput", "cap": 16},
    ],
)
def test_a_profile_within_the_ceilings_is_taken(profile: dict[str, Any]) -> None:
    allowed = within(grant(max_rate_per_s=20, max_streams=16))
    assert aim(run(profile=profile), BenchSettings(), allowed) is not None


def plan(**values: Any) -> StagePlan:
    base = {"name": "s", "profile": {}, "streams": None, "arrivals": None, "max_arrivals": None,
            "max_seconds": 1.0}  # fmt: skip
    return StagePlan(**{**base, **values})


def test_each_stage_is_bounded_again_before_it_begins() -> None:
    bounds = Ceilings(grant(max_rate_per_s=20, max_streams=16))
    assert bounds(plan(asked_rate_per_s=12.0)).streams == 16
    assert bounds(plan(streams=4)).streams == 4
    with pytest.raises(ConfigError, match="25 requests/s"):
        bounds(plan(asked_rate_per_s=25.0))
    second = 1_000_000_000
    busy = TraceArrivals([0, *range(5 * second, 6 * second, second // 21)])
    with pytest.raises(ConfigError, match="22 requests/s"):
        bounds(plan(arrivals=busy))
    assert bounds(plan(arrivals=TraceArrivals(range(0, 9 * second, second // 10)))).streams == 16


async def resolved(host: str, port: int) -> list[str]:
    return {"gpu-a": ["203.0.113.9"], "rebound": ["127.0.0.1"]}[host]


async def test_a_run_is_pinned_to_what_its_target_resolves_to() -> None:
    spec = await pinned(run(), grant(), resolved)
    assert spec.target.url == "http://gpu-a:8000"
    assert spec.target.addresses == ("203.0.113.9",)
    below = await pinned(run("http://gpu-a:8000/v1"), grant(), resolved)
    assert below.target.url == "http://gpu-a:8000/v1"


async def test_a_target_that_changed_since_the_submission_is_checked_again() -> None:
    with pytest.raises(ConfigError, match="4 are allowed"):
        await pinned(run(), grant(max_streams=4), resolved)
    with pytest.raises(ConfigError, match="does not belong"):
        await pinned(run("http://gpu-a:8000"), grant(url="http://gpu-b:8000"), resolved)
    with pytest.raises(ConfigError, match="loopback"):
        await pinned(run(), grant(url="http://rebound:8000"), resolved)
