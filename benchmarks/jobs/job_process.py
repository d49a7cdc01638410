"""What an attempt costs its job process, by itself: no worker, no store, no HTTP.

    python benchmarks/jobs/job_process.py [--attempts 5000]

Attempts are sent one after another to a warm process, forked from here as the forkserver does it.
"""

from __future__ import annotations

import argparse
import gc
import os
import socket
import tempfile
import time
from pathlib import Path

from harness import HERE, header, percentile, row, title

from headway.core.frames import FrameDecoder, encode_frame
from headway.core.states import Lane
from headway.execution.cancel_gate import CancelGate
from headway.execution.channel import JobChannel
from headway.execution.job_process import JobProcess
from headway.execution.messages import Start, encode
from headway.execution.surroundings import Surroundings
from headway.jobs.registry import load_operations
from headway.jobs.secrets import NO_SECRETS

WARM_UP = 200
NS_PER_US = 1000


def fork(ours: socket.socket, theirs: socket.socket) -> int:
    """A job process that has the benchmarks' operations, and `theirs` to its supervisor."""
    registry = load_operations(str(HERE / "operations.py"))
    for each in registry:
        _ = each.request_model, each.result_adapter, each.takes_model
    gc.collect()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        ours.close()  # else it would never hear that this process has hung up
        gate = CancelGate()
        gate.install()
        surroundings = Surroundings({"PATH": os.environ["PATH"]})
        JobProcess(JobChannel(theirs, gate.shield), gate, registry, surroundings).serve()
    theirs.close()
    return pid


def start(number: int, directory: str) -> bytes:
    """The message that begins an attempt."""
    message = Start(
        job_id=f"{number:026}", attempt=1, operation="nothing", lane=Lane.SHORT,
        request=b'{"n":1}', env={}, config={}, labels={}, secrets=NO_SECRETS, target=None,
        keep_result=True, result_limit_bytes=1 << 20, artifact_limit_bytes=1 << 20,
        temp_dir=directory, work_dir=f"{directory}/work", artifact_dir=f"{directory}/artifacts",
        debug_log=f"{directory}/debug.log", reuse=True,
    )  # fmt: skip
    return encode_frame(encode(message))


def run(control: socket.socket, frame: bytes) -> None:
    """Send one attempt and read what it says, to its end."""
    reader, writer = os.pipe()
    socket.send_fds(control, [frame], [writer])
    os.close(writer)
    frames, over = FrameDecoder(), False
    while not over:
        over = any(b"Ended" in payload for payload in frames.feed(control.recv(1 << 16)))
    os.close(reader)


def cpu_ns(pid: int) -> int:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--attempts", type=int, default=5000)
    attempts = parser.parse_args().attempts
    title("A warm job process by itself")
    control, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory() as directory:
        pid = fork(control, theirs)
        for number in range(WARM_UP):
            run(control, start(number, directory))
        before_ns, took_us = cpu_ns(pid), []
        for number in range(attempts):
            frame = start(number, directory)
            began_ns = time.perf_counter_ns()
            run(control, frame)
            took_us.append((time.perf_counter_ns() - began_ns) / NS_PER_US)
        used_us = (cpu_ns(pid) - before_ns) / NS_PER_US / attempts
        control.close()
        os.waitpid(pid, 0)
    header("what", "µs")
    row("CPU of the process for an attempt", f"{used_us:.0f}")
    row("attempt sent to its end heard, p50", f"{percentile(took_us, 50):.0f}")
    row("the same, p99", f"{percentile(took_us, 99):.0f}")


if __name__ == "__main__":
    main()
