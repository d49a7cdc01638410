"""On what a run was made: versions, host, and what identifies the workload (N9)."""

from __future__ import annotations

import os
import platform
from collections.abc import Set
from importlib import metadata
from typing import Any

import msgspec

from headway.backends.backend import TargetInfo
from headway.load.inputs import Recipe
from headway.load.spec import RunSpec
from headway.wire.redaction import is_secret_name, redact_url

HIDDEN = "***"
"""Stands in `run.json` in the place of a header's secret value."""

_PACKAGES = ("headway", "aiohttp", "httptools", "msgspec", "uvloop")


def provenance(spec: RunSpec, recipe: Recipe) -> dict[str, Any]:
    """What is known before the target was asked."""
    return {
        "versions": _versions(),
        "host": _host(),
        "workload_hash": recipe.workload_hash,
        "inputs": recipe.provenance,
        "labels": dict(spec.labels),
    }


def target_provenance(target: TargetInfo) -> dict[str, Any]:
    """What validation learned of the target, without credentials."""
    known: dict[str, Any] = msgspec.to_builtins(target)
    if target.url is not None:
        known["url"] = redact_url(target.url)
    return known


def public_spec(spec: RunSpec) -> dict[str, Any]:
    """The RunSpec as JSON, without secrets: `run.json` is made to be passed on."""
    public = spec.model_dump(mode="json")
    public["objectives"] = spec.judged_by.model_dump(mode="json")
    target = public["target"]
    target["url"] = redact_url(target["url"])
    # Looked up by each attempt anew: another one is no other run.
    target["addresses"] = []
    if target["proxy"] is not None:
        target["proxy"] = redact_url(target["proxy"])
    hidden = {name.lower() for name in spec.target.hidden_headers}
    for part in (target, public["backend"]):
        headers = part.get("headers", {})
        part |= {"headers": _public_headers(headers, hidden)} if headers else {}
    return public


def _public_headers(headers: dict[str, str], hidden: Set[str]) -> dict[str, str]:
    return {
        name: HIDDEN if name.lower() in hidden or is_secret_name(name) else value
        for name, value in headers.items()
    }


def available_cpus() -> int:
    """CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _host() -> dict[str, Any]:
    return {
        "name": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "cpus_available": available_cpus(),
    }
