"""Operations for the tests of hostile users."""

from __future__ import annotations

import time
from typing import Any

from headway.jobs import JobContext, operation


@operation(lane="inline")
async def echo(job: JobContext, text: str = "") -> str:
    return text


@operation(lane="short")
def carry(job: JobContext, data: Any = None) -> Any:
    """Takes and gives whatever JSON can carry."""
    return data


@operation(lane="long", grace_s=5.0)
def sleep(job: JobContext, seconds: float = 60.0) -> None:
    """Keeps what it holds."""
    time.sleep(seconds)
