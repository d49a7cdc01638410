from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway.cli.exit_codes import ExitCode
from headway.cli.gate import gate_command
from headway.core.errors import ConfigError

MakeRun = Callable[..., Path]


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(gate_command, [str(one) for one in arguments], standalone_mode=False)


def test_each_answer_has_its_exit_code(make_run: MakeRun) -> None:
    """N8."""
    base, slow, short = (
        make_run("base"),
        make_run("slow", draw=2, slower=1.2),
        make_run("s", seconds=3),
    )
    other = make_run("other", seed=5, seconds=20)
    metric = ("--metric", "tpot_p50_s")
    unsure = (*metric, "--max-regression", "20%", "--strict")
    cases: list[tuple[ExitCode, tuple[str | Path, ...]]] = [
        (ExitCode.OK, (base, "--slo", "ttft p99 < 100ms")),
        (ExitCode.OBJECTIVE_MISSED, (base, "--slo", "ttft p99 < 1ms")),
        (ExitCode.INVALID_MEASUREMENT, (short, "--slo", "ttft p99 < 1ms")),
        (ExitCode.REGRESSION, (slow, "--baseline", base, *metric)),
        (ExitCode.NOT_COMPARABLE, (other, "--baseline", base)),
        (ExitCode.CANNOT_TELL, (slow, "--baseline", base, *unsure)),
    ]  # fmt: skip
    for code, arguments in cases:
        result = invoke(*arguments)
        assert result.return_value == code, result.output


def test_files_for_a_ci_page_are_written_and_the_summary_is_appended(
    make_run: MakeRun, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    files = ("--junit", tmp_path / "gate.xml", "--markdown", summary)
    result = invoke(make_run("a"), "--slo", "ttft p99 < 1ms", *files, "--json")
    assert json.loads(result.stdout)["result"] == "objective missed"
    assert summary.read_text(encoding="utf-8").startswith("before\n## Headway gate")
    assert (tmp_path / "gate.xml").read_bytes().startswith(b"<?xml")


def test_a_goodput_that_no_run_was_asked_to_measure_says_how_to(make_run: MakeRun) -> None:
    result = invoke(make_run("a", spec={"objectives": {}}), "--slo", "goodput > 1/s", "--json")
    assert result.return_value == ExitCode.OBJECTIVE_MISSED
    texts = [check["text"] for check in json.loads(result.stdout)["checks"]]
    assert "not measured; `headway bench --objective` says what a good request is" in texts


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "needs --slo, --baseline, or both"),
        (("--slo", "ttft p99 < 1"), "has no unit"),
        (("--slo", "ttft p99 < 1s", "--accept", "FINE"), "--accept: FINE is no verdict"),
        (("--slo", "ttft p99 < 1s", "--stage", "other"), "has no stage called other; it has "),
        (("--slo", "ttft p99 < 1s", "--max-regression", "5%"), "--max-regression says how to"),
        (("--slo", "ttft p99 < 1s", "--strict", "--metric", "ttft"), "--strict, --metric says"),
        (("--baseline", "b", "--max-regression", "5"), "'5' is no share; write 5% or one below 1"),
        (("--baseline", "b", "--min-change", "1"), "'1' is no share; write 1% or one below 1"),
    ],
)
def test_wrong_questions_are_refused(
    make_run: MakeRun, arguments: tuple[str, ...], said: str
) -> None:
    result = invoke(make_run("a", seconds=3), *arguments)
    assert isinstance(result.exception, ConfigError)
    assert said in str(result.exception)
