"""The pages on which one signs in."""

from __future__ import annotations

from urllib.parse import urlencode

from headway.dashboard.layout import bare_page
from headway.report.html.markup import Markup, tag


def sign_in_page(next_path: str, *, problem: str | None, provider: str | None) -> str:
    """The form for a token.

    Args:
        next_path: Where to go on.
        problem: Why the last try was refused.
        provider: The name of another place to sign in at; None: there is none.
    """
    way = f"/login/oidc?{urlencode({'next': next_path})}"
    elsewhere = None
    if provider is not None:
        elsewhere = tag("a", f"Sign in with {provider}", href=way, class_="button primary")
    return bare_page(
        "Sign in",
        tag("h1", "Sign in to Headway"),
        elsewhere,
        tag(
            "form",
            tag("label", "Access token", for_="token"),
            tag("input", id="token", name="token", type="password", autocomplete="off",
                spellcheck="false", required=True, autofocus=provider is None, maxlength=200,
                placeholder="hw_…"),
            tag("p", problem, class_="problem", role="alert") if problem else None,
            tag("input", type="hidden", name="next", value=next_path),
            tag("button", "Sign in", class_="button" if provider else "button primary"),
            action="/login",
            method="post",
        ),
        tag("p", "Or run ", tag("code", "headway dashboard"), " in a terminal that is logged in.",
            class_="note"),
    )  # fmt: skip


def link_page(code: str, user: str) -> str:
    """Asks before a link signs in: opening an address, as mail scanners do, must not."""
    return bare_page(
        "Sign in",
        tag("h1", "Sign in to Headway"),
        tag("p", "This link signs this browser in as ", tag("strong", user), "."),
        tag(
            "form",
            tag("button", f"Sign in as {user}", class_="button primary", autofocus=True),
            action=f"/login/link/{code}",
            method="post",
        ),
    )


def refused_page(title: str, sentence: str) -> str:
    """Says why one is not signed in, and where to try again."""
    again: Markup = tag("a", "Sign in another way", href="/login")
    return bare_page(title, tag("h1", title), tag("p", sentence), tag("p", again))
