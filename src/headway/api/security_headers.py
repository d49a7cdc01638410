"""Headers that keep a browser from being misled; every answer of the server carries them.

One policy for pages, data and files: a browser that is made to open any address of the server runs
and loads nothing but the server's own files, and no other site can frame or read what it shows.
"""

from __future__ import annotations

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

_HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Addresses name jobs, and a sign-in link is a secret for as long as it is valid.
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
SECURITY_HEADERS = tuple((name.encode(), value.encode()) for name, value in _HEADERS.items())
"""As ASGI has them."""

NO_STORE = (b"cache-control", b"no-store")
"""For every answer that does not say otherwise: what belongs to somebody is kept nowhere else."""
