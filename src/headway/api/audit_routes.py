"""The route of the audit log."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from headway.api.account_views import audit_view
from headway.api.entrance import Entrance
from headway.api.identity import Caller
from headway.api.problems import problem_answers
from headway.client.account_models import AccountName, AuditPage

Action = Annotated[str | None, Query(pattern=r"^[a-z._-]{1,40}$")]


class AuditRoutes:
    """`/v1/audit`.

    Args:
        entrance: Has the log.
    """

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance

    def router(self) -> APIRouter:
        router = APIRouter(tags=["accounts"])
        answers = problem_answers(401, 403, 422, 429, 503)
        router.add_api_route("/v1/audit", self.log, response_model=AuditPage, responses=answers)
        return router

    async def log(
        self,
        caller: Caller,
        before: Annotated[int | None, Query(ge=0, le=2**53)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        of: Annotated[AccountName | None, Query(description="Only this workspace's.")] = None,
        action: Action = None,
    ) -> AuditPage:
        """Administrative acts and denied calls, newest first."""
        # What was counted but not written yet belongs to the answer.
        await self._entrance.trail.write()
        rows = await self._entrance.accounts.audit_log(before, limit, workspace=of, action=action)
        next_before = rows[-1].number if len(rows) == limit else None
        return AuditPage(lines=[audit_view(row) for row in rows], next_before=next_before)
