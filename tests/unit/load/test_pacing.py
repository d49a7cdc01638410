"""Alarms: never early, replaceable, disarmed when cleared."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource

import pytest

from headway.core.clock import NS_PER_MS, NS_PER_S, SystemClock, monotonic_ns
from headway.load import pacing
from headway.load.pacing import LoopAlarm, TimerfdAlarm, open_alarm


@pytest.fixture(params=["best", "loop"])
async def alarm(request):
    fired = []

    def ring():
        fired.append(monotonic_ns())

    clock = SystemClock()
    made = open_alarm(ring, clock) if request.param == "best" else LoopAlarm(ring, clock)
    yield made, fired
    made.close()
    made.close()


async def until(condition):
    deadline_ns = monotonic_ns() + 10 * NS_PER_S
    while not condition():
        assert monotonic_ns() < deadline_ns
        await asyncio.sleep(0.001)


async def test_it_never_fires_before_its_time(alarm):
    made, fired = alarm
    for step in range(1, 20):
        at_ns = monotonic_ns() + step * NS_PER_MS // 3
        made.set(at_ns)
        await until(lambda expected=step: len(fired) == expected)
        assert fired[-1] >= at_ns


async def test_a_time_in_the_past_fires_at_once(alarm):
    made, fired = alarm
    made.set(monotonic_ns() - NS_PER_MS)
    await until(lambda: fired)


async def test_setting_it_again_replaces_the_former_time(alarm):
    made, fired = alarm
    made.set(monotonic_ns() + 3_600_000 * NS_PER_MS)
    made.set(monotonic_ns() + 5 * NS_PER_MS)
    await until(lambda: fired)
    await asyncio.sleep(0.02)
    assert len(fired) == 1


async def test_a_cleared_alarm_is_silent(alarm):
    made, fired = alarm
    made.set(monotonic_ns() + 2 * NS_PER_MS)
    made.clear()
    await asyncio.sleep(0.02)
    assert fired == []


@pytest.mark.skipif(not pacing._HAS_TIMERFD, reason="timerfd is Linux's")
async def test_linux_gets_the_exact_alarm():
    made = open_alarm(lambda: None, SystemClock())
    assert isinstance(made, TimerfdAlarm)
    made.close()


async def test_an_alarm_of_the_loop_that_rings_too_soon_is_set_again():
    """Loop timers are rounded, and a request must not be sent before it is due."""

    class Behind(SystemClock):
        readings = 0

        def monotonic_ns(self):
            self.readings += 1
            # As at its setting, at the first ringing: no time has passed.
            return at_ns - NS_PER_MS if self.readings < 3 else monotonic_ns()

    fired = []
    clock = Behind()
    at_ns = monotonic_ns() + NS_PER_MS
    alarm = LoopAlarm(lambda: fired.append(monotonic_ns()), clock)
    alarm.set(at_ns)
    await until(lambda: fired)
    assert clock.readings >= 4, "once to set it, once as it rang early, twice more to ring"
    assert len(fired) == 1
    alarm.close()


@pytest.mark.skipif(not pacing._HAS_TIMERFD, reason="timerfd is Linux's")
async def test_without_a_descriptor_for_it_an_alarm_says_so_instead_of_staying_silent():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 8, hard))
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(taken[0]))
        with pytest.raises(OSError, match="timerfd_create failed") as refused:
            TimerfdAlarm(lambda: None)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in taken:
            os.close(descriptor)
    assert refused.value.errno == errno.EMFILE
