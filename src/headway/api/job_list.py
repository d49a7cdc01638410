"""Which jobs a list shows, and what of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from headway.access.identity import Identity
from headway.client.models import Job, ShortText
from headway.core.states import JobState
from headway.store.jobs import JobQuery

_FIELD = "|".join(Job.model_fields)


class ListParameters(BaseModel):
    """The query parameters of a list.

    Attributes:
        label: `name=value`; may be given more than once, and all must match.
        mine: Only what the caller submitted.
        cursor: `next_cursor` of the page before.
        fields: Names of a job's fields, separated by commas: only these are answered.
    """

    model_config = ConfigDict(extra="forbid")

    state: list[JobState] = []
    operation: ShortText | None = None
    label: Annotated[
        list[Annotated[str, StringConstraints(pattern=r"^[^=\x00]{1,200}=[^\x00]{0,4096}$")]],
        Field(max_length=16),
    ] = []
    created_by: ShortText | None = None
    mine: bool = False
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    cursor: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,18}$")] | None = None
    fields: (
        Annotated[str, StringConstraints(pattern=rf"^({_FIELD})(,({_FIELD}))*$", max_length=1000)]
        | None
    ) = None

    def query(self, caller: Identity) -> JobQuery:
        """The store's question, inside the caller's workspace."""
        return JobQuery(
            states=tuple(self.state),
            operation=self.operation,
            workspace=caller.workspace,
            created_by=caller.user if self.mine else self.created_by,
            labels=dict(_split(label) for label in self.label),
            before=None if self.cursor is None else int(self.cursor),
            limit=self.limit,
        )

    def chosen_fields(self) -> set[str] | None:
        """The fields to answer; None: all."""
        return None if self.fields is None else set(self.fields.split(","))


def _split(label: str) -> tuple[str, str]:
    name, _, value = label.partition("=")
    return name, value
