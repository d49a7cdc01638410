"""Operations that the API tests submit; the tests never run them."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel, Field

from headway.jobs import Retry, operation, precondition


class Train(BaseModel):
    model: str
    epochs: int = Field(3, ge=1, le=100)


class Trained(BaseModel):
    loss: float


class Settings(BaseModel):
    precision: str = "bf16"


@operation(lane="long", retryable=True, timeout_s=3600, max_attempts=3, config=Settings)
def train(job: Any, request: Train) -> Trained:
    """Train a model."""
    raise Retry(after_s=1, reason="never run")


@operation(lane="short", concurrency_key=lambda request: request.name)
def greet(job: Any, name: str = "you") -> str:
    return f"hello {name}"


@operation(lane="short")
def nothing(job: Any) -> None:
    """Takes no input."""


@operation(lane="short")
def keep(job: Any, anything: Any = None) -> None:
    """Takes whatever JSON there is."""


@precondition()
async def gpu_free(count: int = 1) -> str | None:
    return None


@operation(lane="inline", cancel_on_disconnect=True)
async def pause(job: Any, seconds: float = 60.0) -> str:
    await asyncio.sleep(seconds)
    return "done"
