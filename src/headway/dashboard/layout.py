"""The frame around every page."""

from __future__ import annotations

from dataclasses import dataclass

from headway import __version__
from headway.dashboard.reader import Reader
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


def page(title: str, place: str, *content: Child, reader: Reader, live: Live | None = None) -> str:
    """A whole document.

    Args:
        title: In the browser's tab.
        place: The address of the menu's entry that this page belongs to.
        content: The page's own.
        reader: Who looks at it.
        live: Keeps the page's regions up to date; None: it stays as it is.
    """
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
        _top(place, reader),
        main,
        tag("footer", f"Headway {__version__}", tag("a", "API", href="/openapi.json")),
    )
    return _document(title, body)


def bare_page(title: str, *content: Child) -> str:
    """A document for somebody whom the server does not know yet: nothing leads anywhere."""
    mark = tag("p", _mark(), "Headway", class_="brand")
    main = tag("main", mark, *content, id="main", class_="sign-in")
    return _document(title, tag("body", main, class_="bare"))


def _document(title: str, body: Markup) -> str:
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
    return "<!doctype html>\n" + tag("html", head, body, lang="en")


def _top(place: str, reader: Reader) -> Markup:
    places = [entry for entry in _PLACES if _is_offered(entry[0], reader)]
    links = [
        tag("a", name, href=address, aria_current="page" if address == place else None)
        for address, name in places
    ]
    return tag(
        "header",
        tag("a", _mark(), "Headway", href="/jobs", class_="brand"),
        tag("nav", links, aria_label="Pages"),
        tag("span", id="connection", role="status", class_="connection"),
        _account(place, reader),
        class_="top",
    )


def _is_offered(address: str, reader: Reader) -> bool:
    if address == "/runs/new" and not reader.may_run:
        return False
    return reader.with_runs or address == "/jobs"


def _account(place: str, reader: Reader) -> Markup | None:
    """Who is signed in, where; nothing on a server that has one user."""
    if reader.name is None:
        return None
    choices = [
        tag("option", name, value=name, selected=name == reader.workspace)
        for name in reader.workspaces
    ]
    switch = tag(
        "form",
        tag("label", "Workspace", for_="workspace"),
        tag("select", choices, id="workspace", name="workspace"),
        tag("input", type="hidden", name="next", value=place),
        tag("button", "Show", class_="button small"),
        action="/workspace",
        method="post",
        class_="workspaces",
    )
    leave = tag(
        "form",
        tag("span", reader.name, class_="user", title=reader.name),
        tag("button", "Sign out", class_="button small"),
        action="/logout",
        method="post",
        class_="account",
    )
    return fragment(switch if choices else None, leave)


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
