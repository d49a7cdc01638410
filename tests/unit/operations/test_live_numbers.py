"""A snapshot survives its way through a job's progress."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.load import LiveSnapshot
from headway.operations.live_numbers import fraction_of, message_of, numbers_of, snapshot_of

_COUNTS = st.integers(min_value=0, max_value=10**9)
_SECONDS = st.none() | st.floats(min_value=0, max_value=1e6)
SNAPSHOTS = st.builds(
    LiveSnapshot,
    stage=_COUNTS,
    stages=_COUNTS,
    name=st.text(max_size=40).filter(lambda name: " – failing: " not in name),
    elapsed_s=st.floats(min_value=0, max_value=1e6),
    is_draining=st.booleans(),
    asked_rate_per_s=_SECONDS,
    streams=st.none() | _COUNTS,
    max_seconds=_SECONDS,
    max_requests=st.none() | _COUNTS,
    sent=_COUNTS,
    completed=_COUNTS,
    errored=_COUNTS,
    cancelled=_COUNTS,
    in_flight=_COUNTS,
    sent_rate_per_s=st.floats(min_value=0, max_value=1e6),
    done_rate_per_s=st.floats(min_value=0, max_value=1e6),
    ttft_p50_s=_SECONDS,
    top_error=st.none() | st.text(min_size=1, max_size=40),
)


@given(SNAPSHOTS)
def test_what_was_told_is_what_is_shown(snapshot: LiveSnapshot) -> None:
    assert snapshot_of(message_of(snapshot), numbers_of(snapshot)) == snapshot


@given(SNAPSHOTS)
def test_the_fraction_is_one(snapshot: LiveSnapshot) -> None:
    assert 0 <= fraction_of(snapshot) <= 1


def snapshot(**values: object) -> LiveSnapshot:
    base = dict.fromkeys(LiveSnapshot.__struct_fields__, 0)
    base |= {"name": "n", "max_seconds": None, "max_requests": None, "top_error": None}
    return msgspec.convert(base | values, LiveSnapshot, strict=False)


@pytest.mark.parametrize(
    ("values", "fraction"),
    [
        ({"stage": 0, "stages": 4}, 0.0),
        ({"stage": 1, "stages": 4, "elapsed_s": 5.0, "max_seconds": 10.0}, 0.375),
        ({"stage": 3, "stages": 4, "completed": 8, "errored": 2, "max_requests": 10}, 1.0),
    ],
)
def test_stages_count_alike(values: dict[str, object], fraction: float) -> None:
    assert fraction_of(snapshot(**values)) == fraction


def test_progress_without_a_stage_is_no_snapshot() -> None:
    assert snapshot_of("preparing inputs", {}) is None
    assert snapshot_of(None, {"stage": 1.0}) is None


def test_numbers_of_a_newer_server_do_no_harm() -> None:
    numbers = numbers_of(snapshot(stages=2)) | {"new_number": 1.0}
    assert snapshot_of("n", numbers) == snapshot(stages=2)
