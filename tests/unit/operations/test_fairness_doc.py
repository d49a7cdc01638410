"""`docs/fairness.md` names the concurrency keys that load tests really have (J25, N5)."""

from __future__ import annotations

import re
from pathlib import Path

from headway.load.spec import RunSpec
from headway.operations.target import target_key

DOC = Path(__file__).parents[3] / "docs" / "fairness.md"


def test_the_members_of_the_lock_in_the_docs_are_keys_of_load_tests() -> None:
    members = re.findall(r"--member '([^']+)'", DOC.read_text(encoding="utf-8"))
    assert len(members) == 2
    for member in members:
        url = member.removeprefix("target ")
        spec = RunSpec.model_validate(
            {
                "target": {"url": f"{url}/v1"},
                "profile": {"kind": "poisson", "rate": [1]},
                "limits": {"max_seconds": 1},
            }
        )
        assert target_key(spec) == member
