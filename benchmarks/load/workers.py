"""P9: the client's rate with two workers over its rate with one, on two cores.

    python benchmarks/load/workers.py [--rounds 3] [--seconds 5]

The null backend, because a server would need a third core. The command itself (which hands out
work and writes the records) runs on the same two cores.
"""

from __future__ import annotations

import argparse

from harness import CONNECTIONS, Samples, bench, command_line, title, verdict

AT_LEAST = 1.7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    title("P9: two workers over one, null backend", command_line())
    samples = Samples()
    load = ["--backend", "null", "--streams", str(CONNECTIONS), "--no-calibrate", "--quiet",
            "--max-seconds", f"{options.seconds:g}s"]  # fmt: skip
    for _ in range(options.rounds):
        one = bench(*load, "--workers", "1").completed_per_s
        two = bench(*load, "--workers", "2").completed_per_s
        samples.add("1", one)
        samples.add("2", two)
        samples.add("ratio", two / one)
    print("| workers | requests/s, median | spread |")
    print("|---|---|---|")
    for name in ("1", "2"):
        print(f"| {name} | {samples.median(name):,.0f} | {samples.spread(name, 0)} |")
    ratio = samples.median("ratio")
    text = f"{ratio:.2f} × ({samples.spread('ratio', 2)}), at least {AT_LEAST}"
    verdict("P9", text, ratio >= AT_LEAST)


if __name__ == "__main__":
    main()
