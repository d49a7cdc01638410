"""Another load tool's command line as a job: live log, cancel, artifacts, one run per target.

It is off until the operator of a server enables it, because whoever may submit jobs can then start
the programs in TOOLS with any arguments:

    headway serve --operations examples/other_tool.py

Then, for example:

    headway submit other_tool --wait tool=vllm target=http://gpu-1:8000 arguments:='[
        "bench", "serve", "--base-url", "{target}", "--save-result", "--result-dir", "{results}"]'
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from headway.core.errors import ConfigError
from headway.jobs import Condition, JobCancelled, JobContext, operation

TOOLS = ("aiperf", "guidellm", "inference-perf", "oha", "vllm", "wrk")
"""The programs that jobs may start. Leave out shells: they start everything else."""

STOP_S = 10.0
"""How long a cancelled tool may take to write what it has."""


class ToolRun(BaseModel, extra="forbid"):
    """What to run. `{target}` and `{results}` in an argument are filled in."""

    tool: str
    target: Annotated[str, Field(pattern=r"^https?://[^\s/]+")]
    arguments: Annotated[tuple[str, ...], Field(max_length=200)] = ()


class ToolEnded(BaseModel):
    """How it ended; its files are the job's artifacts."""

    exit_code: int
    files: tuple[str, ...]


def target_of(request: ToolRun) -> str:
    """The same key as Headway's own runs have, so that neither measures the other."""
    from headway.load.spec import RunSpec
    from headway.operations.target import target_key

    return target_key(RunSpec.model_validate({"target": {"url": request.target}}))


def program_of(tool: str) -> str:
    """The program's path.

    Raises:
        ConfigError: it is not allowed, or not installed here.
    """
    if tool not in TOOLS:
        raise ConfigError(f"this server runs no {tool!r}; it runs {', '.join(TOOLS)}")
    program = shutil.which(tool)
    if program is None:
        raise ConfigError(f"{tool} is not installed on this server")
    return program


def conditions(request: ToolRun, config: object) -> list[Condition]:
    """Refuses a tool that is not there when it is submitted, then waits for the target."""
    program_of(request.tool)
    arguments = {"url": request.target, "any_answer": True}
    return [Condition("target_healthy", arguments, timeout_s=1800)]


@operation(lane="long", grace_s=STOP_S + 5, concurrency_key=target_of, conditions=conditions)
def other_tool(job: JobContext, request: ToolRun) -> ToolEnded:
    """Run another load tool's command line."""
    results = job.temp_dir / "results"
    results.mkdir()
    places = {"{target}": request.target, "{results}": str(results)}
    command = [program_of(request.tool), *(_filled(each, places) for each in request.arguments)]
    print("$", *command)
    try:
        exit_code = _run(command)
    finally:
        # Also of a cancelled run: what the tool wrote by then is worth keeping.
        files = tuple(_keep(job, results))
    if exit_code != 0:
        raise RuntimeError(f"{request.tool} ended with exit code {exit_code}; its log says why")
    return ToolEnded(exit_code=exit_code, files=files)


def _run(command: list[str]) -> int:
    # Its output goes to the job's log by itself. Whatever it leaves running dies with the job.
    process = subprocess.Popen(command)
    try:
        return process.wait()
    except JobCancelled:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
        raise


def _keep(job: JobContext, results: Path) -> list[str]:
    kept = []
    for file in sorted(results.rglob("*")):
        if file.is_file():
            name = file.relative_to(results).as_posix()
            job.artifact(name, file)
            kept.append(name)
    return kept


def _filled(argument: str, places: dict[str, str]) -> str:
    for placeholder, value in places.items():
        argument = argument.replace(placeholder, value)
    return argument
