"""The frame around every page."""

from __future__ import annotations

from dataclasses import dataclass

from headway import __version__
from headway.report.html.markup import Child, Markup, fragment, tag

_PLACES = (
    ("/jobs", "Jobs"),
    ("/runs/new", "New run"),
    ("/targets", "Targets"),
    ("/compare", "Compare"),
)


@dataclass(frozen=True)
class Live:
    """How a page stays up to date.

    Attributes:
        stream: The address of server-sent events.
        position: Where the stream goes on from what the page shows.
        gap_ms: At least so long between two looks at what changed.
    """

    stream: str
    position: str = ""
    gap_ms: int = 400


def page(
    title: str, place: str, *content: Child, live: Live | None = None, with_runs: bool = True
) -> str:
    """A whole document.

    Args:
        title: In the browser's tab.
        place: The address of the menu's entry that this page belongs to.
        content: The page's own.
        live: Keeps the page's regions up to date; None: it stays as it is.
        with_runs: Whether the server offers load tests.
    """
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Headway"),
        tag("link", rel="icon", href="/assets/icon.svg", type="image/svg+xml"),
        tag("link", rel="stylesheet", href="/assets/report.css"),
        tag("link", rel="stylesheet", href="/assets/dashboard.css"),
        tag("script", src="/assets/report.js", defer=True),
        tag("script", type="module", src="/assets/page.js"),
    )
    main = tag(
        "main",
        *content,
        id="main",
        tabindex=-1,
        data_stream=None if live is None else live.stream,
        data_position=None if live is None else live.position,
        data_gap=None if live is None else live.gap_ms,
    )
    body = tag(
        "body",
        tag("a", "Skip to content", href="#main", class_="skip"),
        _top(place, with_runs),
        main,
        tag("footer", f"Headway {__version__}", tag("a", "API", href="/openapi.json")),
    )
    return "<!doctype html>\n" + tag("html", head, body, lang="en")


def _top(place: str, with_runs: bool) -> Markup:
    places = _PLACES if with_runs else _PLACES[:1]
    links = [
        tag("a", name, href=address, aria_current="page" if address == place else None)
        for address, name in places
    ]
    return tag(
        "header",
        tag("a", _mark(), "Headway", href="/jobs", class_="brand"),
        tag("nav", links, aria_label="Pages"),
        tag("span", id="connection", role="status", class_="connection"),
        class_="top",
    )


def _mark() -> Markup:
    ticks = [tag("rect", x=x, y=3, width=3, height=12, rx=1.5) for x in (0, 9, 14, 26, 31)]
    return tag("svg", ticks, viewBox="0 0 34 18", class_="brand-mark", aria_hidden="true")


def heading(title: Child, *beside: Child) -> Markup:
    """The page's title, with what stands beside it."""
    return tag("div", tag("h1", title), fragment(*beside), class_="heading")


def region(name: str, *content: Child, kind: str = "section", **attributes: str) -> Markup:
    """A part of the page that is replaced when it changes."""
    return tag(kind, *content, id=name, data_region=True, **attributes)


def empty(text: str, *more: Child) -> Markup:
    """What stands where nothing is."""
    return tag("p", text, " ", *more, class_="empty")
