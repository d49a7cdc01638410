"""Every answer of the dashboard, with the headers that keep a browser from being misled."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request, Response

from headway.api.problems import Refusal

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""No inline script and no inline style: text that got past the escaping could do nothing."""

SECURITY_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def html_response(document: str, status: int = 200) -> Response:
    """A page. It is made anew for each request, so nobody keeps it."""
    return Response(
        document,
        status_code=status,
        media_type="text/html",
        headers={**SECURITY_HEADERS, "cache-control": "no-store"},
    )


def see_other(location: str) -> Response:
    """After a form was sent: the page that shows what came of it."""
    return Response(status_code=303, headers={**SECURITY_HEADERS, "location": location})


def check_same_origin(request: Request) -> None:
    """Refuse a form that a page of another site sent.

    Raises:
        Refusal: 403.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    if foreign or site not in ("same-origin", "none"):
        raise Refusal(403, "this form was sent by a page of another site")
