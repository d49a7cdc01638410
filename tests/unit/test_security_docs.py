"""The threat model names tests that exist; the shown proxy and service are those that work."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from headway.api.oidc_settings import OidcSettings

ROOT = Path(__file__).parents[2]
DEPLOYING = (ROOT / "docs" / "deploying.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DEPLOYING, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_every_test_that_the_threat_model_names_exists() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[a-z0-9_/.]+)`", text))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_proxy_that_is_shown_is_the_one_that_is_tested() -> None:
    tested = (ROOT / "tests" / "support" / "nginx.py").read_text(encoding="utf-8")
    shown = [line.strip() for line in block("nginx").splitlines() if "proxy_" in line]
    assert len(shown) > 5
    for line in shown:
        if "proxy_pass" not in line:
            assert line in tested, line


def test_the_provider_that_is_shown_can_be_set_up_so() -> None:
    settings = OidcSettings.model_validate(yaml.safe_load(block("yaml"))["oidc"])
    assert [rule.group for rule in settings.groups] == ["ml", "ml-leads", "staff"]
