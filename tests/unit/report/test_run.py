"""The whole way from a run directory to its report."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core.clock import ns_from_s
from headway.core.errors import ConfigError, InputError
from headway.records.record import Failure, Note, WorkerDied
from headway.records.run_dir import RunDirectory
from headway.report import StageReport, build, stage_summary

SCHEMA_SPEC = {"target": {"url": "http://t"}, "inputs": {"kind": "file", "path": "x"}}


def _only_stage(writer: Any) -> StageReport:
    (stage,) = build(writer.directory).stages
    return stage


def test_a_steady_stage_has_the_numbers_that_were_put_in(steady: Any) -> None:
    stage = _only_stage(steady())
    assert stage.verdict.word == "VALID"
    assert (stage.counts.offered, stage.counts.completed, stage.counts.recorded) == (
        1000,
        1000,
        1000,
    )
    assert stage.ttft is not None
    assert stage.ttft.p50_s == pytest.approx(0.02)
    assert stage.ttfo is not None
    assert stage.ttfo.p99_s == pytest.approx(0.02)
    assert stage.tpot is not None
    assert stage.tpot.p99_s == pytest.approx(0.005)
    assert stage.latency is not None
    assert stage.latency.p50_s == pytest.approx(0.115)
    assert stage.response is not None
    assert stage.response.max_s == pytest.approx(0.115)
    assert stage.stall is not None
    assert stage.stall.p50_s == pytest.approx(0.005)
    assert stage.chunk_gap is not None
    assert stage.chunk_gap.count == 19_000
    assert stage.concurrency is not None
    # Little's law: 50/s × 0.115 s, less the first requests' ramp-up.
    assert stage.concurrency.mean == pytest.approx(50 * 0.115, rel=0.01)
    assert stage.rates.asked_per_s == stage.rates.offered_per_s == stage.rates.sent_per_s == 50
    assert stage.rates.output_tokens_per_s == pytest.approx(1000, rel=0.01)
    assert stage.tokens.output_sources == {"usage": 1000}
    assert stage.with_failures.latency is None
    assert stage.goodput is None


def test_trap_27_response_time_keeps_the_wait_that_service_latency_hides(
    write_run: Any, make: Any
) -> None:
    """N2: 50/s with a cap; arrivals of two frozen seconds are sent late, none is lost."""
    writer = write_run()
    writer.started(profile={"kind": "constant", "rate": [50.0], "cap": 10})
    for i in range(1000):
        due = i / 50
        late = max(0.0, 12.0 - due) if 10.0 <= due < 12.0 else 0.0
        writer.records([make.completed(i, due, late_s=late)])
    writer.ended(20, offered=1000)
    stage = _only_stage(writer)
    assert stage.verdict.word == "SCHEDULE_MISSED"
    assert stage.counts.completed == 1000
    assert stage.latency is not None
    assert stage.response is not None
    assert stage.latency.p99_s == pytest.approx(0.115)
    # The truth: the 11th longest of 100 waits of 2.00, 1.98, ... s.
    assert stage.response.p99_s == pytest.approx(0.115 + 1.80, abs=0.021)


def test_trap_45_the_same_cut_holds_for_numerator_and_denominator(
    write_run: Any, make: Any
) -> None:
    """Warm-up at half the load: a numerator that kept it would not give 50/s."""
    writer = write_run()
    writer.started(planned_warmup_s=10.0, planned_cooldown_s=5.0)
    slow = [make.completed(i, i / 25, ttft_s=1.0) for i in range(250)]
    writer.records(slow + [make.completed(250 + i, 10 + i / 50) for i in range(1000)])
    writer.ended(30, offered=1250)
    stage = _only_stage(writer)
    assert (stage.window.start_s, stage.window.end_s) == (10, 25)
    assert stage.rates.completed_per_s == pytest.approx(50, rel=0.04)
    assert stage.rates.offered_per_s == pytest.approx(50, rel=0.01)
    assert stage.ttft is not None
    assert stage.ttft.max_s == pytest.approx(0.02)
    assert stage.counts.offered + stage.counts.outside_window == 1250


def test_throughput_above_capacity_counts_what_completed_under_load(
    write_run: Any, make: Any
) -> None:
    """Offered 100/s, served 50/s: the drain after sending ended does not count as throughput."""
    writer = write_run()
    writer.started(profile={"kind": "constant", "rate": [100.0]})
    writer.records(make.completed(i, i / 100, done_ns=ns_from_s((i + 1) / 50)) for i in range(1000))
    writer.ended(20, offered=1000, sending_ended_ns=ns_from_s(10))
    stage = _only_stage(writer)
    assert stage.rates.offered_per_s == pytest.approx(100)
    assert stage.rates.completed_per_s == pytest.approx(50)
    assert "NOT_STEADY" in stage.verdict.words


def test_a_burst_is_measured_to_the_end_of_the_stage(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started(profile={"kind": "concurrent", "streams": [8]})
    writer.records(make.completed(i, 0.0) for i in range(8))
    writer.ended(0.115, offered=8, sending_ended_ns=0)
    stage = _only_stage(writer)
    assert stage.window.end_basis == "stage_ended"
    assert stage.rates.completed_per_s == pytest.approx(8 / 0.115)


def test_missing_values_are_null_and_never_zero(write_run: Any, make: Any) -> None:
    """Trap 45: a reply that does not stream has no TTFT, TPOT, gap or token count."""
    writer = write_run()
    writer.started()
    plain = {
        "first_token_ns": None,
        "first_content_ns": None,
        "last_token_ns": None,
        "gaps_ns": None,
        "output_tokens": None,
        "output_tokens_source": None,
        "input_tokens": None,
    }
    writer.records(make.completed(i, i / 50, **plain) for i in range(200))
    writer.ended(4, offered=200)
    stage = _only_stage(writer)
    for name in ("ttft", "ttfo", "tpot", "chunk_gap", "stall", "connect", "tls", "pool_wait"):
        assert getattr(stage, name) is None, name
    assert stage.latency is not None
    assert stage.tokens.output is None
    assert stage.rates.output_tokens_per_s is None
    assert stage.rates.input_tokens_per_s is None
    assert stage.tokens.cached_share is None
    assert stage.client is None


def test_trap_45_a_one_token_answer_has_no_tpot(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(
        [*(make.completed(i, i / 50, tokens=1) for i in range(3)), make.completed(3, 1.0)]
    )
    writer.ended(2, offered=4)
    stage = _only_stage(writer)
    assert stage.tpot is not None
    assert stage.tpot.count == 1


def test_trap_46_chunk_gaps_and_tpot_stay_apart_when_chunks_carry_many_tokens(
    write_run: Any, make: Any
) -> None:
    """20 tokens in 5 reads 25 ms apart: TPOT speaks of tokens, the chunk gap of reads."""
    writer = write_run()
    writer.started()
    chunked = {"chunks": 5, "gaps_ns": [ns_from_s(0.025)] * 4, "gap_s": 0.1 / 19}
    writer.records(make.completed(i, i / 50, **chunked) for i in range(100))
    writer.ended(2, offered=100)
    stage = _only_stage(writer)
    assert stage.chunk_gap is not None
    assert stage.tpot is not None
    assert stage.chunk_gap.p50_s == pytest.approx(0.025)
    assert stage.tpot.p50_s == pytest.approx(0.1 / 19)


def test_trap_45_reasoning_counts_for_ttft_and_not_for_ttfo(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(
        make.completed(i, float(i), first_content_ns=ns_from_s(i + 0.09)) for i in range(3)
    )
    writer.ended(4, offered=3)
    stage = _only_stage(writer)
    assert stage.ttft is not None
    assert stage.ttfo is not None
    assert stage.ttft.p50_s == pytest.approx(0.02)
    assert stage.ttfo.p50_s == pytest.approx(0.09)


def test_trap_44_connect_tls_and_pool_wait_stand_apart_from_service_time(
    write_run: Any, make: Any
) -> None:
    writer = write_run()
    writer.started()
    waits = {"pool_wait_ns": 4_000_000, "connect_ns": 2_000_000, "tls_ns": 30_000_000}
    writer.records([make.completed(0, 0.0, late_s=0.036, **waits), make.completed(1, 1.0)])
    writer.ended(2, offered=2)
    stage = _only_stage(writer)
    assert stage.tls is not None
    assert (stage.tls.count, stage.tls.max_s) == (1, 0.03)
    assert stage.latency is not None
    assert stage.latency.max_s == pytest.approx(0.115)


def test_failures_stand_beside_the_successes_and_are_grouped(write_run: Any, make: Any) -> None:
    """L13: category, status, message, count, the start of the first body."""
    writer = write_run()
    writer.started()
    records: list[Any] = [make.completed(i, i / 50) for i in range(90)]
    records += [make.errored(90 + i, (90 + i) / 50) for i in range(8)]
    refused = Failure("connect", "connection refused")
    records += [make.errored(98 + i, (98 + i) / 50, refused) for i in range(2)]
    writer.records(records)
    writer.ended(2, offered=100)
    stage = _only_stage(writer)
    assert stage.verdict.word == "ERRORS"
    assert [(g.category, g.status, g.count) for g in stage.errors] == [
        ("http_status", 500, 8),
        ("connect", None, 2),
    ]
    assert stage.errors[0].body == '{"error": "boom"}'
    assert stage.errors[0].first_index == 90
    assert stage.latency is not None
    assert stage.latency.count == 90
    assert stage.with_failures.latency is not None
    assert stage.with_failures.latency.p90_s == pytest.approx(0.115)
    assert stage.with_failures.latency.p99_s == "Infinity"


def test_trap_48_when_everything_fails_there_is_a_reason_and_no_table_of_zeros(
    write_run: Any, make: Any
) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.errored(i, i / 50) for i in range(100))
    writer.ended(2, offered=100)
    stage = _only_stage(writer)
    assert stage.verdict.words == ["ERRORS", "TOO_FEW_SAMPLES"]
    assert stage.latency is None
    assert stage.ttft is None
    assert stage.with_failures.response is not None
    assert stage.with_failures.response.p50_s == "Infinity"
    assert stage.errors[0].body == '{"error": "boom"}'


def test_a_target_with_a_new_message_every_time_does_not_fill_the_report(
    write_run: Any, make: Any
) -> None:
    writer = write_run()
    writer.started()
    writer.records(
        make.errored(i, i / 50, Failure("server", f"request {i} is unlucky")) for i in range(500)
    )
    writer.ended(10, offered=500)
    errors = _only_stage(writer).errors
    assert len(errors) == 101
    assert sum(group.count for group in errors) == 500
    assert errors[0].count == 400


def test_requests_that_were_never_sent_make_the_schedule_missed(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(980))
    writer.records(make.never_sent(980 + i, 19.6 + i / 50) for i in range(20))
    writer.ended(20, offered=1000)
    stage = _only_stage(writer)
    assert stage.counts.never_sent == stage.counts.cancelled == 20
    assert stage.verdict.word == "SCHEDULE_MISSED"
    assert stage.with_failures.response is not None
    assert stage.with_failures.response.p99_s == "Infinity"


def test_what_was_handed_out_ahead_and_never_due_was_not_offered(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(200))
    writer.records(make.never_sent(200 + i, 4.02 + i / 50) for i in range(50))
    writer.ended(4.2, offered=200, sending_ended_ns=ns_from_s(4))
    stage = _only_stage(writer)
    assert (stage.counts.offered, stage.counts.outside_window) == (200, 50)
    assert stage.verdict.word == "VALID"


def test_trap_35_a_request_that_is_recorded_twice_is_counted_once(
    write_run: Any, make: Any
) -> None:
    writer = write_run()
    writer.started()
    records = [make.completed(i, i / 50) for i in range(100)]
    writer.records(
        [*records, records[7], make.completed(7, 0.14, turn=1), make.completed(7, 0.14, turn=1)]
    )
    writer.ended(2, offered=100)
    stage = _only_stage(writer)
    assert (stage.counts.duplicates, stage.counts.completed) == (2, 101)


def test_arrivals_without_a_record_are_found(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(197))
    writer.ended(4, offered=200)
    stage = _only_stage(writer)
    assert stage.counts.missing == 3
    assert stage.verdict.word == "WORKER_LOST"


def test_a_lost_worker_is_named(steady: Any) -> None:
    writer = steady()
    writer.event(WorkerDied(worker=1, stage=0, cause="signal 9", lost_requests=4))
    report = build(writer.directory)
    assert report.verdict == "WORKER_LOST"
    assert (report.workers_lost[0].cause, report.workers_lost[0].lost_requests) == ("signal 9", 4)


def test_a_stage_that_was_never_ended_is_partial_and_still_measured(
    write_run: Any, make: Any
) -> None:
    """After kill -9: the second stage ends where its records do."""
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(500))
    writer.ended(10, offered=500)
    writer.started(stage=1, name="constant 100/s")
    writer.records(make.completed(i, i / 100, stage=1) for i in range(300))
    report = build(writer.directory)
    assert [stage.partial for stage in report.stages] == [False, True]
    assert not report.complete
    assert report.stages[1].window.end_basis == "last_record"
    assert report.stages[1].rates.completed_per_s == pytest.approx(300 / 3.105)
    assert report.stages[1].counts.missing is None


def test_an_interrupted_stage_is_partial(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(500))
    writer.ended(10, offered=500, reason="interrupted")
    assert _only_stage(writer).partial


def test_trap_50_a_warm_cache_is_said_where_unique_prompts_were_asked(
    write_run: Any, make: Any
) -> None:
    for spec_change, words in (({}, ["CACHE_WARM"]), ({"inputs": {"kind": "file"}}, [])):
        writer = write_run(spec={"inputs": {"unique_prefix": True}, **spec_change})
        writer.started()
        writer.records(make.completed(i, i / 50, cached_tokens=200) for i in range(200))
        # Later turns share their history by nature.
        writer.records(make.completed(i, i / 50, turn=1, cached_tokens=256) for i in range(200))
        writer.ended(4, offered=200)
        stage = _only_stage(writer)
        assert stage.tokens.cached_share == pytest.approx(200 / 256)
        assert stage.verdict.words == words


def test_client_health_comes_from_the_busiest_worker(steady: Any) -> None:
    writer = steady()
    writer.samples(20, cpu=0.95)
    stage = _only_stage(writer)
    assert stage.client is not None
    assert stage.client.cpu_share_max == pytest.approx((0.2 + 0.95) / 2)
    assert stage.client.rss_max_bytes == 60 << 20


def test_the_floor_is_published_beside_the_result(steady: Any) -> None:
    """N3."""
    writer = steady(calibration={"requests": 100, "duration_s": 1.0, "ttft_p50_s": 0.01})
    report = build(writer.directory)
    assert report.calibration == {"requests": 100, "duration_s": 1.0, "ttft_p50_s": 0.01}
    assert report.verdict == "CLIENT_BOUND"


def test_provenance_and_notes_pass_through(steady: Any) -> None:
    """N9."""
    writer = steady(
        provenance={"headway": "0.1.0", "workload_hash": "abc", "target": {"model": "m"}}
    )
    writer.event(Note(topic="tokens", text="prompts were counted by /tokenize"))
    report = build(writer.directory)
    assert report.run.provenance["workload_hash"] == "abc"
    assert report.run.model == "sim-8b"
    assert report.notes[0].text == "prompts were counted by /tokenize"


def test_the_same_directory_gives_the_same_report(steady: Any) -> None:
    directory = steady().directory
    assert build(directory) == build(RunDirectory(directory.path))


def test_a_stage_can_be_summed_up_as_soon_as_it_has_ended(write_run: Any, make: Any) -> None:
    writer = write_run()
    for stage in (0, 1):
        writer.started(stage=stage)
        writer.records(make.completed(i, i / 50, stage=stage) for i in range(200))
        writer.ended(4, stage=stage, offered=200)
    assert stage_summary(writer.directory, 1) == build(writer.directory).stages[1]
    with pytest.raises(InputError, match="nothing of stage 2"):
        stage_summary(writer.directory, 2)


def test_a_run_without_stages_has_an_empty_report(write_run: Any) -> None:
    report = build(write_run().directory)
    assert report.stages == []
    assert not report.complete


def test_a_stage_without_records_is_reported_without_numbers(write_run: Any) -> None:
    writer = write_run()
    writer.started()
    writer.ended(1, offered=0)
    stage = _only_stage(writer)
    assert stage.latency is None
    assert stage.series is None
    assert stage.concurrency is None
    assert stage.verdict.word == "TOO_FEW_SAMPLES"


def test_unreadable_objectives_are_a_clear_error(write_run: Any) -> None:
    writer = write_run(spec={"objectives": {"ttft_s": -1}})
    with pytest.raises(ConfigError, match="objectives"):
        build(writer.directory)


def test_one_hiccup_among_few_requests_is_not_a_missed_schedule(write_run: Any, make: Any) -> None:
    for late_ones, words in ((1, []), (2, ["SCHEDULE_MISSED"])):
        writer = write_run()
        writer.started()
        writer.records(
            make.completed(i, i / 50, late_s=0.1 if i < late_ones else 0.0) for i in range(120)
        )
        writer.ended(2.4, offered=120)
        assert _only_stage(writer).verdict.words == words
