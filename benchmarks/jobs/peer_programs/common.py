"""What the drivers of all peers share: how they are called and what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

URL = os.environ.get("SERVICE_URL", "")
_SLEEP = "import time; time.sleep(600)"


def wait_with_children(notes: str) -> None:
    """The same tree as Headway's `obeys`: two children, one in a session of its own."""
    children = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", _SLEEP], start_new_session=own)
        for own in (False, True)
    ]
    time.sleep(0.2)
    with open(notes, "w") as file:
        file.write(" ".join(map(str, (os.getpid(), *(child.pid for child in children)))) + "\n")
    time.sleep(600)


def latencies_ms(count: int, once: Callable[[int], object]) -> list[float]:
    """How long it takes from handing a job in to holding its result."""
    took = []
    for number in range(count):
        began_s = time.perf_counter()
        once(number)
        took.append((time.perf_counter() - began_s) * 1000)
    return took


def main(**actions: Callable[..., object]) -> None:
    """`program ACTION ARGUMENT...` prints what the action gives back."""
    action, *arguments = sys.argv[1:]
    print(json.dumps(actions[action](*arguments)))
