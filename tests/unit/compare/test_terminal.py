from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console, RenderableType

from headway.compare import CompareOptions, Comparison, Refusal, compare_runs
from headway.compare.terminal import comparison_view, metric_label, metric_value, refusal_view

MakeRun = Callable[..., Path]


def shown(view: RenderableType) -> str:
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        console.print(view)
    return console.export_text()


def test_a_comparison_fits_80_columns_and_ends_with_its_word(make_run: MakeRun) -> None:
    outcome = compare_runs(
        make_run("a", error_share=0.05),
        make_run("b", draw=2, slower=1.2, error_share=0.05),
        CompareOptions(metrics=["ttft", "tpot", "error_share", "completed_per_s"]),
    )
    assert isinstance(outcome, Comparison)
    text = shown(comparison_view(outcome))
    assert max(map(len, text.splitlines())) <= 80
    row = next(line for line in text.splitlines() if line.startswith("TPOT p50"))
    assert row.split()[-1] == "worse"
    assert row.split()[2:6] == ["4.98", "ms", "6.00", "ms"]
    assert "caution: in A" in text
    assert text.rstrip().splitlines()[-1].startswith("B against A: worse")


def test_a_refusal_says_why(make_run: MakeRun) -> None:
    outcome = compare_runs(make_run("a", seconds=5), make_run("b", seconds=5, seed=9))
    assert isinstance(outcome, Refusal)
    assert "seed: the seeds differ" in shown(refusal_view(outcome))


def test_values_have_their_units() -> None:
    assert metric_label("ttft_p99_s") == "TTFT p99"
    assert metric_value("ttft_p99_s", 0.0123) == "12.30 ms"
    assert metric_value("latency_p50_s", 12.5) == "12.50 s"
    assert metric_value("completed_per_s", 37.26) == "37.3/s"
    assert metric_value("error_share", 0.0125) == "1.25%"
    assert metric_value("good_share", None) == "–"
