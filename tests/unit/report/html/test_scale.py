from __future__ import annotations

import random

import pytest

from headway.report.html.scale import Scale, fitting_scale, nice_step


def test_a_scale_maps_its_ends_to_its_ends() -> None:
    scale = Scale(10, 20, 100, 0)
    assert (scale.place(10), scale.place(15), scale.place(20)) == (100, 50, 0)
    logarithmic = Scale(1, 100, 0, 100, logarithmic=True)
    assert logarithmic.place(10) == pytest.approx(50)


def test_values_beyond_the_ends_stay_on_the_end() -> None:
    assert Scale(1, 100, 0, 50, logarithmic=True).place(0.0) == 0
    assert Scale(0, 1, 0, 50).place(7) == 50


@pytest.mark.parametrize(("rough", "nice"), [(0.3, 0.5), (1, 1), (1.1, 2), (4, 5), (60, 100)])
def test_steps_are_one_two_or_five(rough: float, nice: float) -> None:
    assert nice_step(rough) == pytest.approx(nice)


def test_every_scale_holds_its_values_and_has_a_few_ticks() -> None:
    rng = random.Random(8)
    for _ in range(500):
        values = [rng.lognormvariate(0, 3) for _ in range(rng.randrange(1, 20))]
        scale = fitting_scale(values, 200, 0, may_be_log=rng.random() < 0.5)
        assert scale.high >= max(values)
        assert not scale.logarithmic or scale.low <= min(values)
        ticks = scale.ticks()
        assert 2 <= len(ticks) <= 8, (scale, ticks)
        assert all(scale.low * (1 - 1e-9) <= t <= scale.high * (1 + 1e-9) for t in ticks)


def test_only_values_far_apart_are_drawn_by_logarithm() -> None:
    assert not fitting_scale([1, 39], 0, 1, may_be_log=True).logarithmic
    assert fitting_scale([1, 41], 0, 1, may_be_log=True).logarithmic
    assert not fitting_scale([1, 41], 0, 1).logarithmic


def test_nothing_to_draw_still_has_a_scale() -> None:
    assert fitting_scale([], 0, 1).high == 1.0
    assert fitting_scale([0.0], 0, 1).ticks()
