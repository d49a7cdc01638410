"""The service and the limits that `docs/deploying.md` shows are those of the code."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import yaml

from headway.api.serve_settings import ServeSettings
from headway.store.sqlite.workers import TIMEOUT_S

DEPLOYING = (Path(__file__).parents[2] / "docs" / "deploying.md").read_text(encoding="utf-8")
SETTINGS = ServeSettings(operations=("x",), state_dir=Path("x"))


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DEPLOYING, re.DOTALL)


def test_the_units_watchdog_outwaits_the_store_and_the_watch_over_the_worker() -> None:
    unit = ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(blocks("ini")[0])
    service = unit["Service"]
    assert (service["Type"], service["Restart"]) == ("notify", "on-failure")
    # Half of it is between two signs of life.
    assert service.getint("WatchdogSec") / 2 > max(TIMEOUT_S, SETTINGS.worker_patience_s)
    assert service.getint("TimeoutStopSec") > SETTINGS.drain_s + SETTINGS.drain_grace_s


def test_the_probes_ask_what_does_not_need_a_token_and_only_liveness_decides_on_a_restart() -> None:
    probes = yaml.safe_load(blocks("yaml")[-1])
    assert probes["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert probes["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_the_settings_of_the_limits_exist() -> None:
    table = DEPLOYING.partition("## Limits\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"\| `([a-z_]+)` \|$", table, re.MULTILINE))
    assert named
    assert named <= set(ServeSettings.model_fields)
