"""The operation `bench`: a load test as a durable job. `headway serve` offers it out of the box."""

from __future__ import annotations

from headway.jobs import Condition, JobContext, operation
from headway.load.spec import RunSpec
from headway.operations.aim import aim
from headway.operations.files import check_readable
from headway.operations.result import BenchResult
from headway.operations.secrets import check_no_secrets, secret_names
from headway.operations.target import BenchSettings, target_conditions, target_key


def conditions(spec: RunSpec, settings: BenchSettings) -> list[Condition]:
    """What the job waits for; a run that could never begin is refused when it is submitted.

    Raises:
        ConfigError: the target's URL or a file cannot be used, or the run holds a secret.
    """
    check_no_secrets(spec)
    check_readable(spec)
    return target_conditions(spec, settings)


@operation(
    lane="long",
    # Running it again does no harm: whole stages are kept, and the run goes on behind them.
    retryable=True,
    max_attempts=10,
    # Requests in flight may end, then the report is written: see `bench_run.STOP_S`.
    grace_s=60.0,
    concurrency_key=target_key,
    conditions=conditions,
    secrets=secret_names,
    aim=aim,
    config=BenchSettings,
)
async def bench(job: JobContext, spec: RunSpec) -> BenchResult:
    """Load-test a target; one run at a time for each."""
    # Here, because the forkserver would carry the scheduler and the reports in every process.
    from headway.operations.bench_run import BenchRun, prepared

    return await BenchRun(job, await prepared(job, spec)).execute()
