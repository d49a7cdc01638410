"""The Idempotency-Key header (J14, trap 15)."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="Sent again with the same body it answers with the same job, not a second one.",
    ),
]
