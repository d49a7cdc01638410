"""P6: how long `headway bench` takes from its start to the first request, and from the last reply
to its exit.

    python benchmarks/load/startup.py [--rounds 5]

Against the simulator, with default settings, without calibration, and with the null backend (no
target to ask). The first request is the first of the stage, as its record tells; everything that
comes before (imports, validation, prompt calibration, the client's own floor) counts. Starting
Python and importing nothing is shown as the floor.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from harness import BenchRun, Samples, bench, command_line, simulated, title, verdict

START_S, EXIT_S = 1.0, 0.5
REQUESTS = 200


def times_s(run: BenchRun) -> tuple[float, float]:
    first_ns = run.start_ns + min(r.sent_ns for r in run.records if r.sent_ns is not None)
    last_ns = run.start_ns + max(r.done_ns for r in run.records if r.done_ns is not None)
    return (first_ns - run.began_ns) / 1e9, (run.ended_ns - last_ns) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with simulated("--ttft", "0.02", "--itl", "0.005") as server:
        load = ["--streams", "8", "--max-requests", str(REQUESTS), "--output", "8"]
        kinds = {
            "default settings": [server.url, *load],
            "--no-calibrate": [server.url, *load, "--no-calibrate"],
            "--backend null": ["--backend", "null", *load, "--no-calibrate"],
        }
        title("P6: start and exit", command_line())
        samples = Samples()
        for _ in range(rounds):
            began_s = time.monotonic()
            subprocess.run([sys.executable, "-c", ""], check=True)
            samples.add("python", time.monotonic() - began_s)
            for kind, arguments in kinds.items():
                run = bench(*arguments, "--quiet")
                start_s, exit_s = times_s(run)
                samples.add(f"{kind}: start", start_s)
                samples.add(f"{kind}: exit", exit_s)
                samples.add(f"{kind}: CPU", run.cpu_s)
    print("| run | start to first request, s | spread | last reply to exit, s | spread | CPU, s |")
    print("|---|---|---|---|---|---|")
    for kind in kinds:
        start, end = f"{kind}: start", f"{kind}: exit"
        print(f"| {kind} | {samples.median(start):.2f} | {samples.spread(start, 2)} "
              f"| {samples.median(end):.2f} | {samples.spread(end, 2)} "
              f"| {samples.median(f'{kind}: CPU'):.2f} |")  # fmt: skip
    print(f"\n`python -c ''`: {samples.median('python'):.3f} s")
    for kind in kinds:
        start_s, exit_s = samples.median(f"{kind}: start"), samples.median(f"{kind}: exit")
        text = f"{kind}: {start_s:.2f} s to the first request, {exit_s:.2f} s to the exit"
        verdict("P6", f"{text}, at most {START_S} and {EXIT_S}", start_s <= 1.0 and exit_s <= 0.5)


if __name__ == "__main__":
    main()
