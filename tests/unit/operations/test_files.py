"""The files that a run names, and who can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.core.errors import InputError
from headway.load.spec import RunSpec
from headway.operations.files import check_readable, files_of, with_absolute_paths


def run(data: str, key: str | None = None) -> RunSpec:
    return RunSpec.model_validate(
        {
            "target": {"url": "http://gpu-1", "api_key_file": key, "tls": {"ca_file": "ca.pem"}},
            "inputs": {"kind": "file", "path": data},
            "limits": {"max_seconds": 1},
        }
    )


def test_every_file_is_found_with_its_field() -> None:
    assert dict(files_of(run("prompts.txt", "key"))) == {
        "target.api_key_file": Path("key"),
        "target.tls.ca_file": Path("ca.pem"),
        "inputs.path": Path("prompts.txt"),
    }


def test_paths_are_made_absolute_and_nothing_else_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = run("prompts.txt", "/etc/key")
    after = with_absolute_paths(before)
    assert dict(files_of(after)) == {
        "target.api_key_file": Path("/etc/key"),
        "target.tls.ca_file": tmp_path / "ca.pem",
        "inputs.path": tmp_path / "prompts.txt",
    }
    assert after.limits == before.limits
    assert RunSpec.model_validate(after.model_dump(mode="json")) == after


def test_a_run_whose_files_the_server_cannot_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"inputs\.path: prompts\.txt is not an absolute path"):
        check_readable(RunSpec.model_validate({"target": {"url": "http://a"}, "inputs": {
            "kind": "file", "path": "prompts.txt"}}))  # fmt: skip
    data = tmp_path / "prompts.txt"
    there = {"target": {"url": "http://a"}, "inputs": {"kind": "file", "path": str(data)}}
    with pytest.raises(InputError, match="files are not uploaded"):
        check_readable(RunSpec.model_validate(there))
    data.write_text("one\n")
    check_readable(RunSpec.model_validate(there))
