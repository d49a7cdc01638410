"""Fair shares: the bound of start-time fair queueing, over random histories (J25)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.store.fair_share import Contention, Job, Line, Pick, Rooms, Workspace

WEIGHTS = st.sampled_from([0.5, 1.0, 1.0, 2.0, 5.0])


@dataclass
class Lane:
    """A lane as a store would keep it: rows and virtual times, a contention made anew each time."""

    weights: dict[str, float]
    waiting: dict[tuple[str, str], list[Job]] = field(default_factory=dict)
    tags: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    clock: float | None = None
    sequence: int = 0
    limits: dict[tuple[str, str], int] = field(default_factory=dict)

    def submit(self, workspace: str, user: str = "ann", count: int = 1, priority: int = 0) -> None:
        line = self.waiting.setdefault((workspace, user), [])
        for _ in range(count):
            self.sequence += 1
            line.append(Job(-priority, self.sequence, "op", None))
        line.sort()

    def claim(self, count: int = 1) -> list[Pick]:
        contention = self._contention()
        picks = list(contention.picks(count))
        if contention.is_shared:
            self._keep(contention)
        for pick in picks:
            self.waiting[pick.workspace, pick.user].remove(pick.job)
        return picks

    def backlogged(self, workspace: str) -> bool:
        return any(jobs for (name, _), jobs in self.waiting.items() if name == workspace)

    def _contention(self) -> Contention:
        workspaces: dict[str, Workspace] = {}
        for (name, user), jobs in sorted(self.waiting.items()):
            if jobs:
                tag, clock = self.tags.get((name, ""), (0.0, 0.0))
                lab = Workspace(name, tag, clock, self.weights.get(name, 1.0))
                lab = workspaces.setdefault(name, lab)
                lab.lines.append(Line(user, self.tags.get((name, user), (0.0, 0.0))[0], jobs))
        return Contention(self.clock, list(workspaces.values()), Rooms(self.limits))

    def _keep(self, contention: Contention) -> None:
        self.clock = contention.clock
        for lab in contention.workspaces:
            self.tags[lab.name, ""] = (lab.tag, lab.clock)
            for line in lab.lines:
                self.tags[lab.name, line.user] = (line.tag, 0.0)


def served(picks: list[Pick]) -> list[str]:
    return [pick.workspace for pick in picks]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_backlogged_workspaces_stay_within_the_bound_over_every_interval(
    data: st.DataObject,
) -> None:
    """|n_f/w_f - n_m/w_m| <= 1/w_f + 1/w_m, whatever others do, from whenever both have work."""
    weights = {name: data.draw(WEIGHTS, name) for name in ("f", "m", "other", "late")}
    lane = Lane(weights)
    lane.submit("f", count=400)
    lane.submit("m", count=data.draw(st.sampled_from([1, 400])))
    history: list[tuple[int, int, bool]] = []
    counts = Counter[str]()
    for _ in range(data.draw(st.integers(20, 60))):
        arrival = data.draw(st.sampled_from([None, "m", "other", "late"]))
        if arrival is not None:
            lane.submit(arrival, count=data.draw(st.integers(1, 8)))
        both = lane.backlogged("f") and lane.backlogged("m")
        history.append((counts["f"], counts["m"], both))
        counts.update(served(lane.claim(data.draw(st.integers(1, 5)))))
        history[-1] = (*history[-1][:2], both and lane.backlogged("m"))
    bound = 1 / weights["f"] + 1 / weights["m"]
    for begin, (f_before, m_before, _) in enumerate(history):
        for f_after, m_after, both in history[begin:]:
            f, m = (f_after - f_before) / weights["f"], (m_after - m_before) / weights["m"]
            assert abs(f - m) <= bound + 1e-9, (weights, begin, f, m)
            if not both:
                break


@settings(deadline=None, max_examples=25)
@given(st.lists(WEIGHTS, min_size=2, max_size=8), st.integers(1, 7))
def test_shares_converge_to_the_weights_and_nobody_starves(
    weights: list[float], slots: int
) -> None:
    names = [f"w{number}" for number in range(len(weights))]
    lane = Lane(dict(zip(names, weights, strict=True)))
    for name in names:
        lane.submit(name, count=600)
    counts = Counter[str]()
    total = 0
    while total < 500:
        picks = lane.claim(slots)
        counts.update(served(picks))
        total += len(picks)
    normalized = [counts[name] / weight for name, weight in zip(names, weights, strict=True)]
    jain = sum(normalized) ** 2 / (len(names) * sum(each**2 for each in normalized))
    assert jain > 0.98, (weights, counts)
    for name, weight in zip(names, weights, strict=True):
        fair = total * weight / sum(weights)
        assert abs(counts[name] - fair) <= 1 + weight * sum(1 / each for each in weights), counts


def test_a_workspace_that_was_idle_gets_no_credit_for_it() -> None:
    lane = Lane({})
    lane.submit("busy", count=500)
    lane.submit("late")
    lane.claim(200)
    lane.submit("late", count=100)
    assert Counter(served(lane.claim(20))) == {"busy": 10, "late": 10}


def test_time_at_a_limit_gathers_no_credit_either() -> None:
    lane = Lane({}, limits={("held", ""): 0})
    for name in ("held", "a", "b"):
        lane.submit(name, count=200)
    assert set(served(lane.claim(100))) == {"a", "b"}
    lane.limits.clear()
    counts = Counter(served(lane.claim(30)))
    assert all(9 <= counts[name] <= 11 for name in ("held", "a", "b")), counts


def test_a_single_job_passes_a_flood() -> None:
    lane = Lane({})
    lane.submit("flood", count=10_000)
    lane.claim(50)
    lane.submit("other")
    assert "other" in served(lane.claim(2))


def test_one_job_at_a_time_is_no_way_around_the_share() -> None:
    """A workspace whose queue is empty after each claim keeps its tag."""
    lane = Lane({})
    lane.submit("flood", count=200)
    counts = Counter[str]()
    for _ in range(100):
        if not lane.backlogged("dripping"):
            lane.submit("dripping")
        counts.update(served(lane.claim()))
    assert counts["flood"] >= 49


def test_priority_orders_within_a_workspace_and_not_between_them() -> None:
    lane = Lane({})
    lane.submit("a", count=2)
    lane.submit("a", priority=9)
    lane.submit("b", count=4, priority=1000)
    picks = lane.claim(4)
    assert served(picks) == ["b", "a", "b", "a"] or served(picks) == ["a", "b", "a", "b"]
    assert next(pick for pick in picks if pick.workspace == "a").job.minus_priority == -9


def test_users_of_a_workspace_take_turns_at_equal_priority() -> None:
    lane = Lane({})
    lane.submit("lab", "flooder", count=1000)
    lane.submit("lab", "ann", count=3)
    users = [pick.user for pick in lane.claim(6)]
    assert users == ["flooder", "ann"] * 3


def test_equal_tags_go_by_age() -> None:
    lane = Lane({})
    for name in ("zoe", "adam", "mia"):
        lane.submit(name)
    assert served(lane.claim(3)) == ["zoe", "adam", "mia"]


@pytest.mark.parametrize("limited", [("lab", ""), ("lab", "ann")])
def test_a_limit_stops_the_choice_in_the_middle(limited: tuple[str, str]) -> None:
    lane = Lane({}, limits={limited: 2})
    lane.submit("lab", "ann", count=5)
    lane.submit("lab", "bob", count=5)
    users = Counter(pick.user for pick in lane.claim(9))
    expected = {"ann": 1, "bob": 1} if limited[1] == "" else {"ann": 2, "bob": 5}
    assert users == expected


def test_alone_no_virtual_times_are_kept() -> None:
    lane = Lane({})
    lane.submit("only", count=3)
    lane.claim(2)
    assert (lane.clock, lane.tags) == (None, {})
