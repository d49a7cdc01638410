"""What a run came to, for people and for programs."""

from __future__ import annotations

import json

from headway.chaos.judgement import Flaw, Judgement

MOST_FINDINGS = 50


def report_text(judgement: Judgement, seed: int, minutes: float) -> str:
    """A table of counts, and every finding in a line (the first MOST_FINDINGS)."""
    rows = [
        ("submitted", judgement.submitted),
        *((f"ended {outcome}", jobs) for outcome, jobs in judgement.ended.items()),
        ("attempts", judgement.attempts),
        ("lines followed", judgement.lines),
        ("followers resumed", judgement.resumed),
        ("overlaps excused by SIGSTOP", judgement.excused),
        *((_words(flaw), judgement.count(flaw)) for flaw in Flaw),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name.ljust(width)}  {count:>8}" for name, count in rows]
    for finding in judgement.findings[:MOST_FINDINGS]:
        job = "" if finding.job_id is None else f" job {finding.job_id}:"
        lines.append(f"{_words(finding.flaw)}:{job} {finding.text}")
    if len(judgement.findings) > MOST_FINDINGS:
        lines.append(f"and {len(judgement.findings) - MOST_FINDINGS} more")
    verdict = f"{len(judgement.findings)} findings" if judgement.findings else "all accounted for"
    lines.append(f"{verdict} (seed {seed}, {minutes:g} min)")
    return "\n".join(lines)


def report_json(judgement: Judgement, seed: int, minutes: float) -> str:
    """The same as one JSON object."""
    return json.dumps(
        {
            "seed": seed,
            "minutes": minutes,
            "submitted": judgement.submitted,
            "ended": judgement.ended,
            "attempts": judgement.attempts,
            "lines_followed": judgement.lines,
            "followers_resumed": judgement.resumed,
            "overlaps_excused": judgement.excused,
            "flaws": {flaw.value: judgement.count(flaw) for flaw in Flaw},
            "findings": [
                {"flaw": each.flaw.value, "job_id": each.job_id, "text": each.text}
                for each in judgement.findings
            ],
        },
        indent=2,
    )


def _words(flaw: Flaw) -> str:
    return flaw.value.replace("_", " ")
