"""Operations whose names, words and output try to break out of the dashboard's pages."""

from __future__ import annotations

import time

from pydantic import BaseModel

from headway.jobs import JobContext, operation

HOSTILE = '<img src=x onerror="window.pwned=1"></textarea></script><script>window.pwned=2</script>'


class Colours(BaseModel):
    lines: int = 3


@operation(lane="short")
def hostile(job: JobContext, text: str = HOSTILE) -> str:
    print(f"said {text}", flush=True)
    job.progress(0.5, text, **{text[:60]: 1.0})
    job.artifact("note.txt", text.encode(), media_type="text/plain")
    raise ValueError(text)


@operation(lane="short")
def echo_hostile(job: JobContext, text: str = HOSTILE) -> str:
    return text


@operation(lane="short")
def colours(job: JobContext, request: Colours) -> None:
    for number in range(request.lines):
        print(f"\x1b[1;31mred {number}\x1b[0m plain \x1b[38;2;10;200;30mgreen\x1b[0m")
    print("50%\r100%\x07 done", flush=True)


@operation(lane="long", grace_s=5.0)
def slow(job: JobContext, steps: int = 600) -> int:
    for step in range(steps):
        print(f"step {step}", flush=True)
        job.progress((step + 1) / steps, f"step {step}", loss=1 / (step + 1))
        time.sleep(0.1)
    return steps
