"""What counts as good while a stage runs is what its report counts as good."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.load.goodness import judge_for
from headway.records.record import RequestRecord
from headway.report.columns import Columns
from headway.report.goodput import good_dues_ns
from headway.report.objectives import ObjectiveSpec

MS = 1_000_000
_time = st.none() | st.integers(0, 2_000).map(lambda ms: ms * MS)
_limit = st.none() | st.floats(0.01, 2.0)


@st.composite
def records(draw: st.DrawFn) -> RequestRecord:
    return RequestRecord(
        stage=0,
        index=0,
        worker=0,
        status=draw(st.sampled_from(["completed", "errored", "cancelled"])),
        due_ns=draw(st.integers(0, 500)) * MS,
        sent_ns=draw(_time),
        first_token_ns=draw(_time),
        last_token_ns=draw(_time),
        done_ns=draw(_time),
        output_tokens=draw(st.none() | st.integers(0, 40)),
    )


@given(
    records(),
    st.builds(ObjectiveSpec, ttft_s=_limit, tpot_s=_limit, latency_s=_limit, response_s=_limit),
)
def test_a_stage_and_its_report_agree_on_what_is_good(
    record: RequestRecord, objectives: ObjectiveSpec
) -> None:
    is_good = judge_for(objectives)
    columns = Columns()
    columns.extend([record])
    if is_good is None:
        assert not objectives.are_set
    else:
        assert is_good(record) == bool(good_dues_ns(columns, objectives))


@pytest.mark.parametrize(
    ("tokens", "good"),
    [
        (11, True),  # ten gaps of 50 ms
        (10, False),
        (1, False),  # no gap: undefined is not good (trap 45)
        (None, False),
    ],
)
def test_the_time_for_a_token_is_judged_over_the_gaps_between_tokens(
    tokens: int | None, good: bool
) -> None:
    record = RequestRecord(
        stage=0,
        index=0,
        status="completed",
        due_ns=0,
        sent_ns=0,
        first_token_ns=100 * MS,
        last_token_ns=600 * MS,
        done_ns=600 * MS,
        output_tokens=tokens,
    )
    is_good = judge_for(ObjectiveSpec(tpot_s=0.05))
    assert is_good is not None
    assert is_good(record) is good


@pytest.mark.parametrize("missing", ["first_token_ns", "last_token_ns"])
def test_a_reply_without_token_times_is_not_good(missing: str) -> None:
    record = RequestRecord(
        stage=0,
        index=0,
        status="completed",
        due_ns=0,
        sent_ns=0,
        first_token_ns=100 * MS,
        last_token_ns=200 * MS,
        done_ns=200 * MS,
        output_tokens=50,
    )
    is_good = judge_for(ObjectiveSpec(tpot_s=1.0))
    assert is_good is not None
    assert is_good(record)
    assert not is_good(msgspec.structs.replace(record, **{missing: None}))
