"""Every budget of the load engine, P1 to P9, one after another, and a table of what holds.

    python benchmarks/load/budgets.py > results.md
    python benchmarks/load/budgets.py P3 P9

Takes about five minutes on a machine that has nothing else to do; on any other the ratios say more
than the times. Each part prints its own command, so that it can be run by itself. With PEERS=1 in
the environment other load generators for inference are measured too (`peers.py`).
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {
    ("P1",): ["rates.py", "P1"],
    ("P2",): ["rates.py", "P2"],
    ("P3", "P4", "P5"): ["pacing.py"],
    ("P6",): ["startup.py"],
    ("P7",): ["memory.py"],
    ("P8",): ["../install_size.sh"],
    ("P9",): ["workers.py"],
}
_VERDICT = re.compile(r"^(P\d+): (.*): (met|MISSED)$")
_INSTALL_ROW = re.compile(r"^\| (.+?) \| ([\d.]+) (MiB|s) \| ([\d.]+) (?:MiB|s) \|$")


def run(part: list[str]) -> list[str]:
    """Run one part, show its output as it comes, and return its lines."""
    script = HERE / part[0]
    program = ["bash"] if script.suffix == ".sh" else [sys.executable]
    lines = []
    with subprocess.Popen(
        [*program, str(script), *part[1:]],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHON": sys.executable},
        cwd=HERE.parent.parent,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if process.returncode:
        lines.append(f"{part[0]} failed with exit code {process.returncode}")
    return lines


def rows(lines: list[str]) -> list[str]:
    """Rows of the last table: the verdicts of a part."""
    found = [match for line in lines if (match := _VERDICT.match(line))]
    table = [f"| {match[1]} | {match[2]} | {match[3]} |" for match in found]
    for line in lines:
        if match := _INSTALL_ROW.match(line):
            held = "met" if float(match[2]) <= float(match[4]) else "MISSED"
            text = f"{match[1]}: {match[2]} {match[3]}, at most {match[4]}"
            table.append(f"| P8 | {text} | {held} |")
    return table or [f"| ? | {lines[-1] if lines else 'nothing printed'} | not measured |"]


def versions() -> str:
    """The peers that have a version to tell."""
    wrk = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False)
    name = (wrk.stdout + wrk.stderr).partition("Copyright")[0].strip()
    return f"{name or 'wrk'}; Python {platform.python_version()}; {platform.platform()}"


def main() -> None:
    wanted = set(sys.argv[1:])
    table: list[str] = []
    for budgets, part in PARTS.items():
        if not wanted or wanted & set(budgets):
            table += rows(run(part))
    if os.environ.get("PEERS") == "1":
        run(["peers.py"])
    print(f"\n### All budgets\n\n{versions()}\n\n| budget | measured | |\n|---|---|---|")
    print("\n".join(table))


if __name__ == "__main__":
    main()
