"""What docs/accounts.md tells people to type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from headway.access.accounts import NAME_PATTERN
from headway.client.account_models import NewUser
from headway.client.credentials import TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE
from headway.dispatch.access_retention import AUDIT_KEPT, MAX_DENIED

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "accounts.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)


def test_the_walk_from_a_laptop_to_a_team_works(start_server: Any, tmp_path: Path) -> None:
    server = start_server("--no-bench", operations=ROOT / "examples" / "ops.py")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {
        **server.environ, "PATH": path, "URL": server.url, "STATE": str(server.state_dir),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }  # fmt: skip
    shells = blocks("sh accounts")
    assert len(shells[0].splitlines()) == 10  # as the headline says
    [python] = blocks("python accounts")
    walk = [["bash", "-euo", "pipefail", "-c", shell] for shell in shells[:3]]
    walk += [[sys.executable, "-c", python], ["bash", "-euo", "pipefail", "-c", shells[3]]]
    for command in walk:
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, text=True, capture_output=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
    assert "revoked" in done.stdout


def test_the_page_names_what_there_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for variable in (TOKEN_VARIABLE, TOKEN_FILE_VARIABLE, WORKSPACE_VARIABLE):
        assert variable in text
    assert f"{AUDIT_KEPT.days} days" in text
    assert f"{MAX_DENIED:,}" in text


def test_the_client_knows_names_as_the_server_does() -> None:
    field = NewUser.model_json_schema()["properties"]["name"]
    assert field["pattern"] == f"^{NAME_PATTERN}$"
