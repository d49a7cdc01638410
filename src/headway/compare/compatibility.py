"""Whether two runs differ in nothing but the target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headway.compare.model import Unlike
from headway.report.model import Report, StageReport

MAX_CACHED_DIFFERENCE = 0.1
"""Of the input tokens. A tenth more found in the cache shortens TTFT by as much as a real
difference between two builds would; the verdict's limit for CACHE_WARM is the same."""

_REQUEST_FIELDS = ("kind", "stream", "include_usage", "extra_body", "method", "path", "body")
_CACHE_FIELDS = ("unique_prefix", "prefix_tokens", "prefix_groups")
_LOAD_FIELDS = ("profile", "warmup_s", "cooldown_s", "open_conversations")
_HOST_FIELDS = ("name", "machine", "cpus_available")


def unlike(a: Report, b: Report) -> list[Unlike]:
    """What differs between two runs besides the target; empty when they may be compared."""
    return [*_workload(a, b), *_seed(a, b), *_cache(a, b), *_load(a, b), *_client(a, b)]


def _workload(a: Report, b: Report) -> Iterator[Unlike]:
    one, other = (run.run.provenance.get("workload_hash") for run in (a, b))
    if one is None or other is None:
        text = "the workload of at least one run is not known (its run.json has no workload_hash)"
        yield Unlike(what="workload", text=text, a=one, b=other)
    elif one != other:
        text = "the runs sent different prompts or lengths: give both the same inputs"
        yield Unlike(what="workload", text=text, a=one, b=other)
    requests = [_chosen(run.run.spec.get("backend"), _REQUEST_FIELDS) for run in (a, b)]
    yield from _differing("workload", "the requests were put differently", *requests)


def _seed(a: Report, b: Report) -> Iterator[Unlike]:
    if a.run.seed != b.run.seed:
        text = "the seeds differ, and so do prompts and due times: give both the same --seed"
        yield Unlike(what="seed", text=text, a=a.run.seed, b=b.run.seed)


def _cache(a: Report, b: Report) -> Iterator[Unlike]:
    policies = [_chosen(run.run.spec.get("inputs"), _CACHE_FIELDS) for run in (a, b)]
    yield from _differing("cache", "the prompts share prefixes differently", *policies)
    for one, other in matched_stages(a, b):
        shares = one.tokens.cached_share, other.tokens.cached_share
        if None in shares and shares != (None, None):
            # A target that does not tell is no sign of a warm cache.
            continue
        difference = abs((shares[0] or 0.0) - (shares[1] or 0.0))
        if difference > MAX_CACHED_DIFFERENCE:
            text = (
                f"in stage {one.name} the targets found {shares[0] or 0:.0%} and "
                f"{shares[1] or 0:.0%} of the input tokens in their caches: start both cold, or "
                "both warm"
            )
            yield Unlike(what="cache", text=text, a=shares[0], b=shares[1])


def _load(a: Report, b: Report) -> Iterator[Unlike]:
    loads = [_chosen(run.run.spec, _LOAD_FIELDS) for run in (a, b)]
    yield from _differing("load", "the runs were loaded differently", *loads)
    if not matched_stages(a, b):
        text = "the runs have no stage in common (same name, same load profile)"
        names = [[stage.name for stage in run.stages] for run in (a, b)]
        yield Unlike(what="load", text=text, a=names[0], b=names[1])


def _client(a: Report, b: Report) -> Iterator[Unlike]:
    clients = [_client_of(run) for run in (a, b)]
    yield from _differing("client", "the client was not the same", *clients)


def _client_of(run: Report) -> dict[str, Any]:
    known = run.run.provenance
    return {
        "version": (known.get("versions") or {}).get("headway"),
        "workers": known.get("workers"),
        "transport": (run.run.spec.get("target") or {}).get("transport"),
        **{f"host {name}": (known.get("host") or {}).get(name) for name in _HOST_FIELDS},
    }


def _differing(
    what: Any, text: str, one: Mapping[str, Any], other: Mapping[str, Any]
) -> Iterator[Unlike]:
    for name in dict.fromkeys((*one, *other)):
        values = one.get(name), other.get(name)
        if values[0] != values[1]:
            detail = f"{text}: {name} is {_short(values[0])} in A and {_short(values[1])} in B"
            yield Unlike(what=what, text=detail, a=values[0], b=values[1])


def _chosen(part: Mapping[str, Any] | None, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: (part or {}).get(name) for name in names}


def _short(value: Any) -> str:
    text = "not set" if value is None else _in_words(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _in_words(value: Any) -> str:
    """A part of a description without its JSON: `kind poisson, rate 10, 20`."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_in_words(one)}" for key, one in value.items() if one is not None)
    if isinstance(value, list | tuple):
        return ", ".join(map(_in_words, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def matched_stages(a: Report, b: Report) -> list[tuple[StageReport, StageReport]]:
    """The stages that both runs have, in A's order: same name and same load profile.

    Of stages that are alike within a run, the first goes with the first, the second with the
    second.
    """
    left = b.counted
    pairs = []
    for one in a.counted:
        match = next((s for s in left if (s.name, s.profile) == (one.name, one.profile)), None)
        if match is not None:
            left.remove(match)
            pairs.append((one, match))
    return pairs
