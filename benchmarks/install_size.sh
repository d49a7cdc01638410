#!/usr/bin/env bash
# P8: a clean install of the base package: its size (target 120 MiB), its time (60 s), and how long
# `headway --help` takes (0.3 s, median of 9). Run from the repository's root.
set -euo pipefail
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${PYTHON:-python3}" -m venv "$scratch/venv"
started=$(date +%s.%N)
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir .
ended=$(date +%s.%N)
site=$("$scratch/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$scratch/venv/bin/python" - "$site" "$started" "$ended" "$scratch/venv/bin/headway" <<'PY'
import pathlib, statistics, subprocess, sys, time

site, started, ended, headway = sys.argv[1:]
not_ours = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
size = sum(
    file.stat().st_size
    for entry in pathlib.Path(site).iterdir()
    if not entry.name.startswith(not_ours)
    for file in ([entry] if entry.is_file() else entry.rglob("*"))
    if file.is_file()
)
times = []
for _ in range(9):
    before = time.perf_counter()
    subprocess.run([headway, "--help"], check=True, stdout=subprocess.DEVNULL)
    times.append(time.perf_counter() - before)
print("| what | measured | budget |")
print("|---|---|---|")
print(f"| size with byte code | {size / 2**20:.0f} MiB | 120 MiB |")
print(f"| install, no cache | {float(ended) - float(started):.0f} s | 60 s |")
print(f"| headway --help, median of 9 | {statistics.median(times):.2f} s | 0.30 s |")
PY
