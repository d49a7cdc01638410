"""The package's short names, and what a reader of updates that is too slow loses."""

from __future__ import annotations

import msgspec
import pytest

import headway.load
from headway.load.facade import _STREAM_LIMIT, _Queueing
from headway.load.observer import LiveSnapshot
from headway.load.results import StageResult
from headway.records.record import StageStarted

STARTED = StageStarted(
    stage=0, name="s", profile={}, started_wall="", started_monotonic_ns=0, workers=1
)
ENDED = StageResult(
    stage=0, name="s", profile={}, reason="max_seconds", offered=1, completed=1, errored=0,
    cancelled=0, elapsed_s=1.0, achieved_per_s=1.0,
)  # fmt: skip
SNAPSHOT = LiveSnapshot(
    stage=0, stages=1, name="s", elapsed_s=0.0, is_draining=False, asked_rate_per_s=None,
    streams=1, max_seconds=None, max_requests=None, sent=0, completed=0, errored=0, cancelled=0,
    in_flight=0, sent_rate_per_s=0.0, done_rate_per_s=0.0,
)  # fmt: skip


def test_a_reader_that_is_too_slow_loses_old_snapshots_and_never_a_stage():
    """Trap 40: what nobody reads must not fill the memory."""
    queueing = _Queueing(wants_requests=False)
    queueing.stage_started(STARTED)
    for number in range(3 * _STREAM_LIMIT):
        queueing.progress(msgspec.structs.replace(SNAPSHOT, elapsed_s=float(number)))
        if number == 100:
            queueing.stage_ended(ENDED)
    updates = queueing.take()
    assert len(updates) <= _STREAM_LIMIT + 2
    assert updates.count(STARTED) == updates.count(ENDED) == 1
    assert updates.index(STARTED) < updates.index(ENDED)
    times = [update.elapsed_s for update in updates if isinstance(update, LiveSnapshot)]
    assert times[-1] == 3 * _STREAM_LIMIT - 1
    assert times == sorted(times)
    assert queueing.take() == []


def test_every_public_name_leads_somewhere_and_no_other_does():
    for name in headway.load.__all__:
        assert getattr(headway.load, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Runner'"):
        headway.load.Runner  # noqa: B018
