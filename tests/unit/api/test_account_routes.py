"""Accounts over HTTP."""

from __future__ import annotations

from typing import Any

from accounts import add_token, add_user, bearer_of


async def test_who_asks_for_the_name_of_a_removed_user_is_told_what_to_do(api: Any) -> None:
    """J11: the jobs and the audit log of two people would be taken for one's."""
    await add_user(api.store.accounts, "root", administrator=True)
    headers = bearer_of(await add_token(api.store.accounts, "root"))
    api.entrance.changed()
    ann = {"name": "ann"}
    assert (await api.http.post("/v1/users", json=ann, headers=headers)).status_code == 201
    assert (await api.http.delete("/v1/users/ann", headers=headers)).status_code == 204
    refused = await api.http.post("/v1/users", json=ann, headers=headers)
    assert refused.status_code == 409
    assert "choose another name" in refused.json()["detail"]
    assert "headway admin users add ann --returning" in refused.json()["detail"]
    again = {"name": "ann", "returning": True}
    assert (await api.http.post("/v1/users", json=again, headers=headers)).status_code == 201
    users = (await api.http.get("/v1/users", headers=headers)).json()["users"]
    assert [each["name"] for each in users] == ["ann", "root"]
