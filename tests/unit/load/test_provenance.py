"""What a run says of itself, and what it keeps to itself."""

from __future__ import annotations

import json
import os

from headway.backends.backend import TargetInfo
from headway.load.provenance import available_cpus, public_spec, target_provenance
from headway.load.spec import RunSpec


def test_no_secret_reaches_run_json():
    spec = RunSpec.model_validate(
        {
            "target": {
                "url": "http://user:hunter2@host:1/v1",
                "headers": {"Authorization": "Bearer s3cret", "X-Team": "blue"},
                "proxy": "http://me:hunter2@proxy:3128",
            },
            "backend": {"kind": "http", "headers": {"X-Api-Key": "s3cret"}},
        }
    )
    public = public_spec(spec)
    text = json.dumps(public)
    assert "hunter2" not in text
    assert "s3cret" not in text
    assert public["target"]["headers"]["X-Team"] == "blue"
    assert "host:1/v1" in public["target"]["url"]


def test_a_targets_url_is_kept_without_credentials():
    assert "pw" not in target_provenance(TargetInfo(url="http://u:pw@h"))["url"]


def test_there_is_a_cpu():
    assert available_cpus() >= 1


def test_where_a_process_cannot_be_bound_to_cpus_all_of_them_are_available(monkeypatch):
    """macOS has no sched_getaffinity."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    assert available_cpus() == 12
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cpus() == 1
