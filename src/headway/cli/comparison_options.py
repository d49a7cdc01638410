"""The options that `compare`, `ab` and `gate` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import click

from headway.cli.percentages import parse_share
from headway.cli.spec_options import SpecOption

if TYPE_CHECKING:
    from headway.compare import CompareOptions

_SECTION = "Comparison"
_OPTIONS = (
    click.option(
        "--confidence",
        metavar="PERCENT",
        default="95%",
        cls=SpecOption,
        section=_SECTION,
        help="Of the intervals, and that no word is said where nothing differs. Default: 95%.",
    ),
    click.option(
        "--min-change",
        metavar="PERCENT",
        default="1%",
        cls=SpecOption,
        section=_SECTION,
        help="Smaller changes get no word, however certain. Default: 1%.",
    ),
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        metavar="NAME",
        cls=SpecOption,
        section=_SECTION,
        help="Look only at this, e.g. ttft_p99_s or ttft; may be repeated. Default: all.",
    ),
    click.option(
        "--stage",
        "stages",
        multiple=True,
        metavar="NAME",
        cls=SpecOption,
        section=_SECTION,
        help="Only this stage; may be repeated. Default: all.",
    ),
    click.option(
        "--allow-different",
        is_flag=True,
        cls=SpecOption,
        section=_SECTION,
        help="Compare although workload, seed, cache, load or client differ; the result says so.",
    ),
)


def comparison_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options to a command, which gets them as keyword arguments."""
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), function)


def options_from(
    confidence: str, min_change: str, metrics: Sequence[str], stages: Sequence[str], allow: bool
) -> CompareOptions:
    """The options as the comparison takes them.

    Raises:
        ConfigError: a percentage or a name is wrong.
    """
    from headway.compare import CompareOptions, Rules

    rules = Rules(
        confidence=parse_share("--confidence", confidence, below=1.0),
        minimum_change=parse_share("--min-change", min_change, zero=True),
    )
    return CompareOptions(rules=rules, metrics=metrics, stages=stages, allow_different=allow)
