from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from headway.chaos.plan import Action, Victim, make_plan, plan_from, plan_lines
from headway.chaos.workload import assignments
from headway.core.errors import ConfigError


def test_the_same_seed_gives_the_same_plan_and_another_seed_another() -> None:
    assert make_plan(7, 600.0) == make_plan(7, 600.0)
    assert make_plan(7, 600.0) != make_plan(8, 600.0)


def test_a_longer_plan_begins_as_the_shorter_one_of_its_seed() -> None:
    """A finding of a long run can be looked for in a shorter one."""
    long = make_plan(3, 600.0)
    assert long[: len(make_plan(3, 60.0))] == make_plan(3, 60.0)


def test_a_plan_hurts_everybody_in_every_way() -> None:
    steps = make_plan(1, 120.0)
    assert {step.action for step in steps} == set(Action)
    assert {step.victim for step in steps} == set(Victim)
    killed = {step.victim for step in steps if step.action is Action.KILL}
    assert killed == set(Victim) - {Victim.MACHINE}


@pytest.mark.parametrize("seed", range(20))
def test_steps_come_in_order_and_within_the_time(seed: int) -> None:
    times = [step.at_s for step in make_plan(seed, 30.0)]
    assert times == sorted(times)
    assert times[0] > 0
    assert times[-1] < 30.0


def test_a_plan_survives_being_written_down() -> None:
    steps = make_plan(5, 60.0)
    assert plan_from(plan_lines(steps)) == steps


def test_a_plan_that_was_edited_wrongly_names_its_line() -> None:
    text = plan_lines(make_plan(5, 10.0)) + '{"at_s":1,"action":"tickle","victim":"api"}\n'
    with pytest.raises(ConfigError, match=f"line {len(text.splitlines())} of the plan"):
        plan_from(text)


def test_the_same_seed_gives_the_same_jobs(tmp_path: Path) -> None:
    one, other = (list(islice(assignments(4, tmp_path), 200)) for _ in range(2))
    assert one == other
    assert one != list(islice(assignments(5, tmp_path), 200))
    assert len({each.idempotency_key for each in one}) == 200
