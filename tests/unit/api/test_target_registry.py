"""Registering targets: where they lie is judged once, and one server has one lock (N5)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headway.api.overlays import merged
from headway.api.problems import Refusal
from headway.api.target_registry import TargetRegistry
from headway.client.provision_models import TargetRequest
from headway.core.clock import SystemClock
from headway.core.statedir import StateDir
from headway.store.sqlite.store import SqliteStore
from headway.store.sqlite.targets import SqliteTargets

KNOWN = {
    "api.example": ["203.0.113.9"],
    "gpu-a": ["10.0.0.7", "fd12::7"],
    "localhost": ["127.0.0.1", "::1"],
    "metadata": ["169.254.169.254"],
    "sly": ["203.0.113.9", "::ffff:169.254.169.254"],
}


async def resolver(host: str, port: int) -> list[str]:
    if host not in KNOWN:
        raise OSError("no such name")
    return KNOWN[host]


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[TargetRegistry]:
    store = SqliteStore(StateDir(tmp_path), SystemClock(), random.Random(1))
    await store.open()
    yield TargetRegistry(SqliteTargets(store), None, resolver)
    await store.close()


def asked(url: str, **fields: Any) -> TargetRequest:
    return TargetRequest.model_validate({"url": url, "workspaces": ["blue"], **fields})


@pytest.mark.parametrize(
    ("url", "reach"),
    [
        ("http://api.example", "public"),
        ("http://gpu-a:8000", "private"),
        ("http://localhost:8000", "loopback"),
    ],
)
async def test_a_target_may_lie_where_it_lay_when_it_was_registered(
    registry: TargetRegistry, url: str, reach: str
) -> None:
    row = await registry.put("t", asked(url), "root")
    assert row.reach == reach
    assert registry.range_of("blue").find(f"{url}/v1").name == "t"
    assert registry.of("red") == []


@pytest.mark.parametrize(
    ("url", "fields", "words"),
    [
        ("http://metadata", {}, "link-local"),
        ("http://sly", {}, "link-local"),
        ("http://unknown", {}, "does not resolve now"),
        ("http://gpu-a", {"reach": "public"}, "registered as public"),
        ("http://user:x@gpu-a", {}, "credentials"),
        ("http://gpu-a", {"health_path": "/../x"}, "path"),
    ],
)
async def test_what_may_not_be_registered_is_refused(
    registry: TargetRegistry, url: str, fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refusal, match=words):
        await registry.put("t", asked(url, **fields), "root")
    assert registry.all() == []


async def test_a_name_that_does_not_resolve_yet_is_taken_with_its_reach(
    registry: TargetRegistry,
) -> None:
    row = await registry.put("t", asked("http://unknown", reach="private"), "root")
    assert row.reach == "private"


async def test_one_server_has_one_lock_group(registry: TargetRegistry) -> None:
    await registry.put("a", asked("http://gpu-a:8000/a", lock_group="node"), "root")
    with pytest.raises(Refusal, match="give this one the same"):
        await registry.put("b", asked("http://gpu-a:8000/b"), "root")
    await registry.put("b", asked("http://gpu-a:8000/b", lock_group="node"), "root")
    await registry.put("c", asked("http://gpu-a:8001"), "root")
    found = registry.range_of("blue")
    assert [found.find(f"http://gpu-a:8000/{path}/v1").name for path in "ab"] == ["a", "b"]


async def test_what_is_registered_is_there_after_a_restart(registry: TargetRegistry) -> None:
    await registry.put("a", asked("http://gpu-a:8000"), "root")
    again = TargetRegistry(registry._store, None, resolver)
    await again.load()
    assert again.all() == registry.all()
    await again.remove("a")
    with pytest.raises(Refusal):
        await again.remove("a")


def test_a_job_s_configuration_lies_over_its_workspace_s() -> None:
    under = {"a": 1, "deep": {"x": 1, "y": [1]}, "kept": True}
    over = {"a": 2, "deep": {"y": [2]}}
    assert merged(under, over) == {"a": 2, "deep": {"x": 1, "y": [2]}, "kept": True}
    assert under == {"a": 1, "deep": {"x": 1, "y": [1]}, "kept": True}
