from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from headway.records.record import Failure, Note
from headway.report import Report, build
from headway.report.terminal import report_view, stage_table


def _text(view: Any, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(view)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def _run(write_run: Any, make: Any) -> Report:
    writer = write_run(
        calibration={"requests": 9, "duration_s": 1, "ttft_p50_s": 0.0004, "latency_p50_s": 0.001}
    )
    writer.started(name="poisson 50/s")
    writer.records(make.completed(i, i / 50) for i in range(480))
    failure = Failure("http_status", "HTTP 503", status=503, body="\x1b[2J\x07busy\r\ntry later")
    writer.records(make.errored(480 + i, 9.6 + i / 50, failure) for i in range(20))
    writer.ended(10, offered=500)
    return build(writer.directory)


def test_the_table_holds_the_numbers_with_their_units(steady: Any) -> None:
    text = _text(stage_table(build(steady().directory)))
    assert "milliseconds" in text
    for part in ("constant 50/s", "VALID", "50.0", "20.0", "115.0", "5.0", "997"):
        assert part in text, part


def test_it_fits_eighty_columns_without_cutting_a_number(write_run: Any, make: Any) -> None:
    text = _text(report_view(_run(write_run, make)), width=80)
    assert "…" not in text.split("poisson 50/s: ")[0]
    assert max(len(line) for line in text.splitlines()) <= 80


def test_the_longest_usual_names_and_words_stand_on_one_line_of_eighty_columns(
    write_run: Any, make: Any
) -> None:
    writer = write_run()
    writer.started(name="poisson 19.2/s")
    writer.records(make.completed(i, i / 50) for i in range(50))
    writer.ended(1, offered=50)
    lines = _text(report_view(build(writer.directory)), width=80).splitlines()
    load, times = (line for line in lines if line.startswith("poisson 19.2/s  "))
    assert "TOO_FEW_SAMPLES" in load
    assert "115.0" in times


def test_rows_of_the_file_that_were_not_sent_are_told(write_run: Any, make: Any) -> None:
    writer = write_run()
    told = "1 of 9 lines of chats.jsonl were left out: line 3: not JSON"
    writer.event(Note(topic="inputs", text=told, data={"skipped": 1}))
    writer.event(Note(topic="prompt_tokens", text="counted by the target", data={"checked": 8}))
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(50))
    writer.ended(1, offered=50)
    text = _text(report_view(build(writer.directory)))
    assert f"inputs: {told}" in text
    assert "counted by the target" not in text


def test_what_counts_as_infinite_is_said_of_cancelled_requests_too(
    write_run: Any, make: Any
) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.completed(i, i / 50) for i in range(50))
    writer.records(make.never_sent(50 + i, i / 50) for i in range(5))
    writer.ended(1, offered=55)
    text = _text(report_view(build(writer.directory)))
    assert "each request that did not complete counted as infinite" in text


def test_what_spoils_a_stage_and_what_failed_are_said(write_run: Any, make: Any) -> None:
    text = _text(report_view(_run(write_run, make)), width=200)
    assert "ERRORS: 20 of 500 requests failed (4.00%; limit 1%)" in text
    assert "20 × http_status HTTP 503 | " in text
    assert "∞" in text
    assert "client's own floor (null server): TTFT p50 0.40 ms" in text
    assert "verdict: ERRORS" in text


def test_a_servers_words_cannot_control_the_terminal(write_run: Any, make: Any) -> None:
    text = _text(report_view(_run(write_run, make)), width=200)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "busy try later" in text


def test_trap_48_all_failed_shows_dashes_and_the_reason(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records(make.errored(i, i / 50) for i in range(50))
    writer.ended(1, offered=50)
    text = _text(report_view(build(writer.directory)))
    assert "50 × http_status HTTP 500" in text
    assert "–" in text
    assert "TTFT" not in text


def test_a_partial_stage_is_marked(write_run: Any, make: Any) -> None:
    writer = write_run()
    writer.started()
    writer.records([make.completed(0, 0.0)])
    text = _text(report_view(build(writer.directory)))
    assert "(partial)" in text
    assert "the run is not complete" in text
