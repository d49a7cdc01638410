"""Comparisons for the page: made by `headway compare` in a process of its own.

A bootstrap over a hundred thousand requests takes seconds of a core; in this process every other
request would wait for it.
"""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

import msgspec

from headway.compare.model import Comparison, Refusal
from headway.core.errors import HeadwayError

TIMEOUT_S = 120.0
MAX_KEPT = 32
_MAX_SAID = 2_000

Outcome = Comparison | Refusal


class ComparisonFailed(HeadwayError):
    """The two could not be compared; the text says why."""


class Comparisons:
    """Compares runs, one pair at a time, and remembers the last answers."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Semaphore(1)
        self._kept: OrderedDict[tuple[Path, Path, bool], Outcome] = OrderedDict()

    async def of(self, a: Path, b: Path, *, allow_different: bool) -> Outcome:
        """B held against A; both are run directories that change no more.

        Raises:
            ComparisonFailed: there is no comparison.
        """
        key = (a, b, allow_different)
        async with self._one_at_a_time:
            if key not in self._kept:
                self._kept[key] = await _compare(a, b, allow_different)
            self._kept.move_to_end(key)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]


async def _compare(a: Path, b: Path, allow_different: bool) -> Outcome:
    flags = ["--allow-different"] if allow_different else []
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "headway.cli.main", "compare", str(a), str(b), "--json", *flags,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TIMEOUT_S):
            out, said = await process.communicate()
    except TimeoutError:
        raise ComparisonFailed(f"the comparison took more than {TIMEOUT_S:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    outcome = _decoded(out)
    if outcome is None:
        text = said.decode("utf-8", "replace").strip()[:_MAX_SAID]
        raise ComparisonFailed(text.removeprefix("Error: ") or "the comparison failed")
    return outcome


def _decoded(out: bytes) -> Outcome | None:
    # The two have no field in common that tells them apart, but only one has stages.
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(out, type=Comparison)
    with suppress(msgspec.DecodeError):
        return msgspec.json.decode(out, type=Refusal)
    return None
