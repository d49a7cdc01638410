"""`headway chaos`: hurt a real server by a plan, and see that nothing is lost."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from headway.chaos.plan import Step


@click.command("chaos")
@click.option(
    "--minutes", type=click.FloatRange(min=0.05, max=24 * 60), default=1.0, show_default=True,
    help="How long the server is hurt; it settles afterwards.",
)  # fmt: skip
@click.option(
    "--seed", type=click.IntRange(min=0), help="Of the plan and the jobs.  [default: any]"
)
@click.option("--plan", "only_plan", is_flag=True, help="Print the plan as JSON lines, do nothing.")
@click.option(
    "--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Carry out this plan, as --plan printed it, instead of the seed's.",
)  # fmt: skip
@click.option(
    "--settle-s", type=click.FloatRange(min=1), default=120.0, show_default=True,
    help="How long all jobs may take to end afterwards; those that have not are stuck.",
)  # fmt: skip
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to print the result.",
)  # fmt: skip
@click.option("--keep", is_flag=True, help="Keep the scratch directory; it is kept on a finding.")
def chaos_command(
    minutes: float, seed: int | None, only_plan: bool, replay: Path | None, settle_s: float,
    output: str, keep: bool,
) -> int:  # fmt: skip
    """Kill, stop, starve and restart a real server by a plan, and count what it lost.

    The server is one of its own, in a scratch directory: nothing of yours is touched. The exit
    code is 0 when nothing was lost, stuck, doubled or left behind, else 15.
    """
    from headway.chaos.ordeal import Ordeal, OrdealSettings
    from headway.chaos.plan import make_plan, plan_from, plan_lines
    from headway.chaos.report import report_json, report_text
    from headway.core.clock import SystemClock

    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    duration_s = 60.0 * minutes
    plan = make_plan(seed, duration_s) if replay is None else plan_from(replay.read_text("utf-8"))
    if only_plan:
        click.echo(plan_lines(plan), nl=False)
        return ExitCode.OK
    directory = Path(tempfile.mkdtemp(prefix="headway-chaos-"))
    _tell(f"seed {seed}, {minutes:g} min, {len(plan)} steps, in {directory}")
    settings = OrdealSettings(
        directory=directory, seed=seed, plan=plan, duration_s=duration_s, settle_s=settle_s
    )
    judgement = Ordeal(settings, SystemClock(), _tell).run()
    render = report_json if output == "json" else report_text
    click.echo(render(judgement, seed, minutes))
    if judgement.findings:
        _show_how_to_repeat(plan, seed, minutes, directory)
        return ExitCode.NOT_ACCOUNTED_FOR
    if not keep:
        shutil.rmtree(directory, ignore_errors=True)
    return ExitCode.OK


def _show_how_to_repeat(plan: tuple[Step, ...], seed: int, minutes: float, directory: Path) -> None:
    from headway.chaos.plan import plan_lines

    (directory / "plan.jsonl").write_text(plan_lines(plan), encoding="utf-8")
    _tell(f"everything is kept in {directory}; repeat it with")
    _tell(f"  headway chaos --minutes {minutes:g} --seed {seed} --replay {directory}/plan.jsonl")


def _tell(text: str) -> None:
    click.echo(text, err=True)
