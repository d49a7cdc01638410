"""Operations that leave a mess, and tell what they find of the mess of others."""

from __future__ import annotations

import contextvars
import os
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from headway.core.errors import ConfigError
from headway.jobs import JobContext, current_job, operation

MARK: contextvars.ContextVar[str | None] = contextvars.ContextVar("mark", default=None)
SEEN: list[str] = []
"""Module state: what a process remembers."""


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: int = 0
    text: str = ""


def look(job: JobContext, env: dict[str, str]) -> dict[str, Any]:
    mask = os.umask(0o022)
    os.umask(mask)
    return {
        "env": {name: value for name, value in env.items() if name.startswith("APP_")},
        "config": job.config.model_dump(),
        "temp": sorted(path.name for path in job.temp_dir.iterdir()),
        "mark": MARK.get(),
        "umask": mask,
        "job": current_job().id,
        "secret": secret_of(job),
    }


def secret_of(job: JobContext) -> str | None:
    """Backwards: as it is, it would be taken out of the result."""
    try:
        return job.secret("key")[::-1]
    except ConfigError:
        return None


def mess(job: JobContext, text: str) -> None:
    """What any operation may do to its own surroundings."""
    MARK.set(text)
    (job.temp_dir / "left behind").write_text(text)
    for name in ("APP_SECRET", "APP_A"):
        print(f"{name}={job.env.get(name)}", flush=True)
    job.log.info("%s", job.env.get("APP_SECRET"))
    job.progress(message=f"with {job.env.get('APP_SECRET')}")


def process_mess(job: JobContext, text: str) -> None:
    """What an operation of a process lane may do besides: the process is its own."""
    mess(job, text)
    os.environ["APP_LEFT"] = text
    os.putenv("APP_PUT", text)
    os.chdir("/")
    os.umask(0o077)
    tempfile.tempdir = "/elsewhere"


def in_process(job: JobContext, text: str) -> dict[str, Any]:
    seen = {
        **look(job, dict(os.environ)),
        "cwd": Path.cwd() == job.temp_dir,
        "tempfile": tempfile.gettempdir() == str(job.temp_dir),
        "raw": sorted(
            entry.partition(b"=")[0].decode()
            for entry in Path("/proc/self/environ").read_bytes().split(b"\0")
            if entry.startswith(b"APP_")
        ),
        "remembered": [each for each in SEEN if each.startswith("secret")],
    }
    if "APP_SECRET" in os.environ:
        SEEN.append(f"secret {len(os.environ['APP_SECRET'])}")
    process_mess(job, text)
    if text.startswith("fail"):
        raise ValueError(f"{text} {os.environ.get('APP_SECRET')}")
    return seen


def inline(job: JobContext, text: str) -> dict[str, Any]:
    seen = look(job, dict(job.env))
    mess(job, text)
    if text.startswith("fail"):
        raise ValueError(f"{text} {job.env.get('APP_SECRET')}")
    return seen


@operation(lane="short", config=Settings)
def warm(job: JobContext, text: str) -> dict[str, Any]:
    return in_process(job, text)


@operation(lane="long", config=Settings)
def fresh(job: JobContext, text: str) -> dict[str, Any]:
    return in_process(job, text)


@operation(lane="inline", config=Settings)
async def on_loop(job: JobContext, text: str) -> dict[str, Any]:
    return inline(job, text)


@operation(lane="inline", config=Settings)
def in_thread(job: JobContext, text: str) -> dict[str, Any]:
    return inline(job, text)
