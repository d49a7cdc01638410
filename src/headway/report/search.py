"""What a search found, as the run's own note of it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headway.report.model import Report

TOPIC = "search"


@dataclass(frozen=True)
class SearchFinding:
    """The end of a search.

    Attributes:
        text: For people.
        rate_per_s: The highest rate found that meets the objectives; None: none was found.
        settled: Whether the search came to its end, rather than to the end of its stages.
        limited_by: What keeps the rate from being higher: `missed`, `client`, `asked` or
            `saturation`.
    """

    text: str
    rate_per_s: float | None = None
    settled: bool = False
    limited_by: str | None = None


def search_finding(report: Report) -> SearchFinding | None:
    """The finding of a run that searched; None: it did not, or was cut short before its end."""
    note = next((note for note in reversed(report.notes) if note.topic == TOPIC), None)
    if note is None:
        return None
    answer: dict[str, Any] = (note.data or {}).get("answer") or {}
    return SearchFinding(
        text=note.text,
        rate_per_s=answer.get("rate_per_s"),
        settled=bool(answer.get("settled")),
        limited_by=answer.get("next_is"),
    )
