"""Running out of memory is an outcome of its own, over HTTP as well (J26)."""

from __future__ import annotations

from pathlib import Path

import pytest
from job_servers import JobServer, StartServer

from headway.client import Job, JobFailed

OPERATIONS = Path(__file__).parent / "memory_ops.py"


@pytest.fixture(scope="module")
def memory_server(start_module_server: StartServer) -> JobServer:
    return start_module_server("--no-bench", operations=OPERATIONS)


def ended(server: JobServer, operation: str) -> Job:
    with server.client() as client:
        job = client.wait(client.submit(operation).id, timeout_s=60)
        with pytest.raises(JobFailed, match="out_of_memory"):
            client.result(job.id)
        return job


def test_a_job_over_its_operations_limit_is_out_of_memory(memory_server: JobServer) -> None:
    job = ended(memory_server, "over_its_limit")
    assert job.outcome == "out_of_memory"
    assert job.error is not None
    assert str(150 << 20) in job.error.message


def test_an_allocation_that_the_system_refuses_is_out_of_memory(memory_server: JobServer) -> None:
    job = ended(memory_server, "over_the_systems_limit")
    assert job.outcome == "out_of_memory"
    assert job.error is not None
    assert job.error.type == "MemoryError"
    assert memory_server.process.poll() is None
