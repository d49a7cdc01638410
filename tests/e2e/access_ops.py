"""Operations for the tests of accounts."""

from __future__ import annotations

from headway.jobs import JobContext, operation


@operation(lane="short")
def tell(job: JobContext, text: str) -> str:
    """Say it in the log, in an artifact, in the progress and in the result."""
    print(text, flush=True)
    job.progress(0.5, text)
    job.artifact("said.txt", text.encode())
    return text
