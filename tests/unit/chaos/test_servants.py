from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from headway.chaos.servants import Servant, clean_environment
from headway.core.clock import SystemClock, monotonic_ns, ns_from_s


@pytest.fixture
def servant(tmp_path: Path) -> Servant:
    """A command that ends by itself at once, with exit code 0."""
    log = tmp_path / "log"
    return Servant("it", ["--version"], dict(os.environ), log, "headway", SystemClock())


def tend_until(servant: Servant, holds: Callable[[], bool]) -> None:
    deadline_ns = monotonic_ns() + ns_from_s(60)
    while not holds():
        assert monotonic_ns() < deadline_ns
        servant.tend()


def test_who_was_never_started_is_not_started_by_being_tended(servant: Servant) -> None:
    """It was, and the one that was started on purpose then left it behind, running."""
    servant.tend()
    assert (servant.pid, servant.starts) == (None, 0)


def test_an_end_that_nobody_caused_is_a_complaint_and_a_new_start(servant: Servant) -> None:
    servant.start()
    tend_until(servant, lambda: servant.starts == 2)
    assert servant.complaints[0].startswith("it (start 1) ended by itself with exit code 0")
    servant.end()


def test_an_expected_death_is_no_complaint(servant: Servant) -> None:
    servant.start()
    servant.expect_death(0.0)
    assert servant.pid is not None
    psutil.Process(servant.pid).kill()
    tend_until(servant, lambda: servant.starts == 2)
    assert servant.complaints == []
    servant.end()


def test_settings_for_other_servers_do_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_STATE_DIR", "/somebody/else's")
    environment = clean_environment({"CHAOS_SCRATCH": "here"})
    assert environment["CHAOS_SCRATCH"] == "here"
    assert not any(name.startswith("HEADWAY_") for name in environment)
