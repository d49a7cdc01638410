"""`headway demo`: a simulated inference server, swept from one request at a time to saturation."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from headway.cli.exit_codes import ExitCode
from headway.core.errors import ConfigError, HeadwayError

# A tiny model on one GPU, roughly. Its first and slowest stage still ends the 100 requests that a
# p99 needs, and the knee of its sweep lies well inside what a laptop can send, so that what is seen
# is the server and not the client.
_SIM_OPTIONS = ("--mode", "modelled", "--step-base", "0.002", "--max-batch", "32")
_STAGE_S = 8.0
_LABELS = {"made_by": "headway demo"}
"""By these a later demo knows a run that it may replace from somebody's measurement."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--run-dir",
    default="demo-run",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Where the run is kept; an earlier demo there is replaced.",
)
def demo_command(run_dir: Path) -> int:
    """Start a simulated inference server, sweep it, and write the report. Needs no GPU."""
    from headway.cli.bench import run_bench
    from headway.cli.bench_outcome import BenchOutput
    from headway.load.spec import RunSpec

    _remove_earlier_demo(run_dir)
    with _simulated_server() as url:
        spec = RunSpec.model_validate(
            {
                "target": {"url": url},
                "inputs": {"kind": "synthetic", "prompt_tokens": 256, "output_tokens": 24},
                "profile": {"kind": "sweep", "steps": 4, "saturation_streams": 64},
                "limits": {"max_seconds": _STAGE_S},
                "warmup_s": 1.0,
                "seed": 1,
                "labels": _LABELS,
            }
        )
        code = run_bench(spec, run_dir, BenchOutput())
    # The demo shows a verdict; on a busy machine it is rightly not VALID, and nothing has failed.
    return ExitCode.OK if code is ExitCode.INVALID_MEASUREMENT else code


@contextlib.contextmanager
def _simulated_server() -> Iterator[str]:
    """A `headway sim` of its own process; yields its URL and ends it."""
    command = [sys.executable, "-m", "headway.sim", "--port", "0", "--die-with-parent"]
    with subprocess.Popen([*command, *_SIM_OPTIONS], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            if not ready:
                raise HeadwayError("the simulated server did not start; its error is above")
            yield json.loads(ready)["url"]
        finally:
            process.terminate()


def _remove_earlier_demo(run_dir: Path) -> None:
    """Make room where a demo was kept before.

    Raises:
        ConfigError: what is kept there is no demo.
    """
    from headway.records.run_dir import RunDirectory

    if not (run_dir / "run.json").exists():
        return
    if RunDirectory(run_dir).read_run().spec.get("labels") != _LABELS:
        raise ConfigError(f"{run_dir} holds a run that is no demo; choose another --run-dir")
    for name in ("run.json", "records.jsonl", "events.jsonl"):
        (run_dir / name).unlink(missing_ok=True)
