"""Load generators for inference beside Headway: the same load, the same server, their own numbers.

    PEERS=1 make bench-load
    python benchmarks/load/peers.py [NAME...] [--seconds 10] [--python python3.12]

Each peer is installed from the package index into an environment of its own, kept under
$XDG_CACHE_HOME/headway-peers (never into this one; Headway depends on none of them). One that
cannot be installed, or will not run without something that is not here (a tokenizer from a hub),
is left out, and the table says why. 64 requests in flight, 16 tokens in, streams of 128 tokens,
1 ms apart: no client can have more than 484 requests/s.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness import CONNECTIONS, PROMPT_TOKENS, bench, command_line, flood, simulated, title

CHUNKS = 128
INSTALL_S, RUN_S = 600, 180


class Peer:
    """A load generator: how it is installed, asked, and what it says.

    Args:
        package: Its name on the package index.
        command: (its environment's bin, the server's URL, a scratch directory, seconds) to the
            command.
        read: (what it printed, the scratch directory) to its requests per second.
    """

    def __init__(
        self,
        package: str,
        command: Callable[[Path, str, Path, float], list[str]],
        read: Callable[[str, Path], float | None],
    ) -> None:
        self.package = package
        self.command = command
        self.read = read


_TOKENIZER = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
letters = pre_tokenizers.ByteLevel.alphabet()
model = models.BPE(vocab={c: i for i, c in enumerate(sorted(letters))}, merges=[])
tokenizer = Tokenizer(model)
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(sys.argv[1])
"""


def _tokenizer(bin_dir: Path, scratch: Path) -> str:
    """A tokenizer of bytes, made here: the peers' own come from hubs."""
    path = scratch / "tokenizer"
    subprocess.run(
        [str(bin_dir / "python"), "-c", _TOKENIZER, str(path)], check=True, capture_output=True
    )
    return str(path)


def _inference_perf(bin_dir: Path, url: str, scratch: Path, seconds: float) -> list[str]:
    config = {
        "load": {
            "type": "concurrent",
            "stages": [{"num_requests": int(484 * seconds), "concurrency_level": CONNECTIONS}],
            "num_workers": 1,
            "worker_max_concurrency": CONNECTIONS,
        },
        "api": {"type": "completion", "streaming": True},
        "server": {"type": "vllm", "model_name": "headway-sim", "base_url": url,
                   "ignore_eos": True},
        "data": {"type": "mock"},
        "tokenizer": {"pretrained_model_name_or_path": _tokenizer(bin_dir, scratch)},
        "storage": {"local_storage": {"path": str(scratch / "reports")}},
    }  # fmt: skip
    (scratch / "config.json").write_text(json.dumps(config))
    return [str(bin_dir / "inference-perf"), "--config_file", str(scratch / "config.json")]


def _read_inference_perf(printed: str, scratch: Path) -> float | None:
    for path in sorted(scratch.rglob("summary_lifecycle_metrics.json")):
        return float(json.loads(path.read_text())["successes"]["throughput"]["requests_per_sec"])
    return None


def _aiperf(bin_dir: Path, url: str, scratch: Path, seconds: float) -> list[str]:
    return [
        str(bin_dir / "aiperf"), "profile", "--model", "headway-sim", "--url", url,
        "--endpoint-type", "chat", "--streaming", "--concurrency", str(CONNECTIONS),
        "--request-count", str(int(484 * seconds)), "--ui", "none",
        "--tokenizer", _tokenizer(bin_dir, scratch),
        "--synthetic-input-tokens-mean", str(PROMPT_TOKENS), "--output-tokens-mean", str(CHUNKS),
        "--artifact-dir", str(scratch),
    ]  # fmt: skip


def _read_aiperf(printed: str, scratch: Path) -> float | None:
    for path in scratch.rglob("profile_export_aiperf.json"):
        found = json.loads(path.read_text()).get("request_throughput")
        return float(found["avg"]) if isinstance(found, dict) else None
    return None


def _guidellm(bin_dir: Path, url: str, scratch: Path, seconds: float) -> list[str]:
    tokenizer = _tokenizer(bin_dir, scratch)
    return [
        str(bin_dir / "guidellm"), "run", "--disable-console-interactive",
        "--backend", f"kind=openai_http,target={url},model=headway-sim,stream=true",
        "--profile", f"kind=concurrent,streams={CONNECTIONS}",
        "--constraint", f"kind=max_duration,seconds={seconds:g}",
        "--data", f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={CHUNKS}",
        "--tokenizer", f"kind=huggingface_auto,model={tokenizer}",
        "--output", f"kind=json,path={scratch / 'guidellm.json'}",
    ]  # fmt: skip


def _read_guidellm(printed: str, scratch: Path) -> float | None:
    path = scratch / "guidellm.json"
    if not path.exists():
        return None
    found = re.search(r'"requests_per_second":\s*\{.*?"mean":\s*([\d.]+)', path.read_text(), re.S)
    return float(found[1]) if found else None


PEERS = {
    "guidellm": Peer("guidellm", _guidellm, _read_guidellm),
    "aiperf": Peer("aiperf", _aiperf, _read_aiperf),
    "inference-perf": Peer("inference-perf", _inference_perf, _read_inference_perf),
}


def environment(package: str, interpreter: str) -> Path | str:
    """The bin directory of the peer's own environment, or why there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headway-peers"
    home = cache / package
    python = home / "bin" / "python"
    stamp = home / "installed"
    if stamp.exists():
        return home / "bin"
    try:
        subprocess.run([interpreter, "-m", "venv", str(home)], check=True, capture_output=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", package],
            check=True, capture_output=True, text=True, timeout=INSTALL_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"not installed within {INSTALL_S} s"
    except subprocess.CalledProcessError as error:
        said = error.stderr if isinstance(error.stderr, str) else ""
        return f"cannot be installed: {_last_line(said)}"
    stamp.touch()
    return home / "bin"


def version(bin_dir: Path, package: str) -> str:
    script = f"from importlib.metadata import version; print(version('{package}'))"
    return subprocess.run(
        [str(bin_dir / "python"), "-c", script], capture_output=True, text=True, check=False
    ).stdout.strip()


def measure(name: str, url: str, seconds: float, interpreter: str) -> str:
    """One row of the table."""
    peer = PEERS[name]
    bin_dir = environment(peer.package, interpreter)
    if isinstance(bin_dir, str):
        return f"| {name} | – | – | {bin_dir} |"
    named = f"{name} {version(bin_dir, peer.package)}"
    with tempfile.TemporaryDirectory(prefix="headway-peer-") as text:
        scratch = Path(text)
        before_s, began_s = _children_cpu_s(), time.monotonic()
        try:
            done = subprocess.run(
                peer.command(bin_dir, url, scratch, seconds),
                capture_output=True, text=True, timeout=RUN_S, cwd=scratch, check=False,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            return f"| {named} | – | – | {_last_line(str(error))} |"
        cpu_s, took_s = _children_cpu_s() - before_s, time.monotonic() - began_s
        rate = peer.read(done.stdout, scratch)
    if rate is None:
        said = done.stderr if done.returncode and done.stderr else done.stdout
        return f"| {named} | – | {cpu_s:.1f} | did not run: {_reason(said)} |"
    return f"| {named} | {rate:,.0f} | {cpu_s:.1f} | whole command {took_s:.0f} s |"


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _reason(text: str) -> str:
    """The first line that tells of an error, else the last one."""
    errors = [line for line in text.splitlines() if "error" in line.lower()]
    return _last_line(errors[0] if errors else text)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" ╭╰─╯│")]
    return (lines[-1] if lines else "it said nothing").replace("|", "/")[:160]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("peer", nargs="*", choices=[[], *PEERS], help="default: all")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument(
        "--python",
        default=sys.executable,
        help="interpreter for environments that do not exist yet; some peers need a newer one",
    )
    asked = parser.parse_args()
    with simulated("--ttft", "0.005", "--itl", "0.001") as server:
        title("Peers: 64 streams of 128 tokens, 1 ms apart", command_line())
        print("| client | requests/s | CPU, s | |\n|---|---|---|---|")
        began_s = time.monotonic()
        run = bench(*flood(server.url, asked.seconds, tokens=CHUNKS))
        took_s = time.monotonic() - began_s
        print(f"| headway bench | {run.completed_per_s:,.0f} | {run.cpu_s:.1f} "
              f"| whole command {took_s:.0f} s |", flush=True)  # fmt: skip
        for name in asked.peer or PEERS:
            print(measure(name, server.url, asked.seconds, asked.python), flush=True)


if __name__ == "__main__":
    main()
