"""What is told of tokens."""

from __future__ import annotations

from typing import Any

from accounts import add_member, add_workspace, bearer_of, id_of

from headway.access.roles import Role


async def test_a_token_that_was_just_used_is_not_listed_as_never_used(api: Any) -> None:
    """Uses are collected for a minute, and a list told of them a minute late."""
    await add_workspace(api.store.accounts, "lab")
    token = await add_member(api.store.accounts, "lab", "ann", Role.USER)
    api.entrance.changed()
    answer = await api.http.get("/v1/tokens", headers=bearer_of(token))
    [listed] = answer.json()["tokens"]
    assert listed["id"] == id_of(token)
    assert listed.get("last_used_at") is not None
