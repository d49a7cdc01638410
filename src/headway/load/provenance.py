"""On what a run was made: versions, host, and what identifies the workload (N9)."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from headway.load.inputs import Recipe
from headway.load.spec import RunSpec

_PACKAGES = ("headway", "aiohttp", "httptools", "msgspec", "uvloop")


def provenance(spec: RunSpec, recipe: Recipe) -> dict[str, Any]:
    """What is known before the target was asked."""
    return {
        "versions": _versions(),
        "host": _host(),
        "workload_hash": recipe.workload_hash,
        "labels": dict(spec.labels),
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
