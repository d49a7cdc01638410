"""Targets over HTTP."""

from __future__ import annotations

from typing import Any

TARGET = {"url": "http://127.0.0.1:9"}


async def test_a_target_for_a_workspace_that_there_is_not_is_refused(api: Any) -> None:
    """It was registered, and the members of the one that was meant looked for it in vain."""
    body = {**TARGET, "workspaces": ["default", "defualt"]}
    refused = await api.http.put("/v1/targets/gpu", json=body)
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert (error["path"], error["message"]) == (
        "workspaces.1", "there is no workspace 'defualt'",
    )  # fmt: skip
    assert (await api.http.get("/v1/targets")).json() == {"targets": []}
    made = await api.http.put("/v1/targets/gpu", json={**TARGET, "workspaces": ["default"]})
    assert made.status_code == 200
