"""Every answer of the dashboard; the server adds the headers that keep browsers from harm."""

from __future__ import annotations

from fastapi import Response


def html_response(document: str, status: int = 200) -> Response:
    """A page. It is made anew for each request, and nobody keeps it."""
    return Response(document, status_code=status, media_type="text/html")


def see_other(location: str) -> Response:
    """After a form was sent: the page that shows what came of it."""
    return Response(status_code=303, headers={"location": location})
