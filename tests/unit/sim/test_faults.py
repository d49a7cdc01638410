from __future__ import annotations

import math

import pytest

from headway.core.errors import ConfigError
from headway.sim.faults import NO_FAULTS, FaultPlan, Faults, parse_faults, parse_rule


def test_bare_names_have_useful_defaults() -> None:
    assert parse_faults("error") == Faults(status=500)
    assert parse_faults("stall") == Faults(stall_at=0, stall_s=math.inf)
    assert parse_faults("rate-limit") == Faults(status=429, retry_after_s=1.0)


def test_several_are_separated_by_semicolons() -> None:
    faults = parse_faults("stall:at=3,seconds=0.5; no-usage; reset:at=9")
    assert faults == Faults(stall_at=3, stall_s=0.5, usage=False, reset_at=9)
    assert faults.cut_at == 9


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("explode", "no fault is called 'explode'; there are: error, rate-limit"),
        ("stall:when=3", "has no parameter 'when'; it has: at, seconds"),
        ("stall:at=soon", "at='soon' of a fault is no number"),
        ("error:rate=0.5", "drop rate"),
        ("chunk:tokens=0", "tokens"),
        ("reset:at=-1", "at"),
        ("error:status=99", "status"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_faults(text)


@pytest.mark.parametrize("text", ["error:rate=2", "error:every=0", "error:on=some"])
def test_impossible_selectors_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_rule(text)


def test_the_same_seed_strikes_the_same_requests() -> None:
    def struck(seed: int) -> list[bool]:
        plan = FaultPlan([parse_rule("error:rate=0.3")], seed)
        return [plan.next(None, generates=True) is not NO_FAULTS for _ in range(200)]

    assert struck(1) == struck(1) != struck(2)
    assert 30 <= sum(struck(1)) <= 90


def test_every_and_first_count_requests_that_ask_the_model() -> None:
    plan = FaultPlan([parse_rule("error:every=3"), parse_rule("html:first=1")], 0)
    got = []
    for _ in range(4):
        plan.next(None, generates=False)
        got.append(plan.next(None, generates=True))
    assert got == [Faults(html=True), NO_FAULTS, Faults(status=500), NO_FAULTS]


def test_on_all_counts_and_strikes_everything() -> None:
    plan = FaultPlan([parse_rule("error:every=2,on=all")], 0)
    assert [plan.next(None, generates=False).status for _ in range(4)] == [None, 500, None, 500]


def test_a_header_wins_over_the_rules() -> None:
    plan = FaultPlan([parse_rule("error")], 0)
    assert plan.next(b"no-done", generates=True) == Faults(done=False)
