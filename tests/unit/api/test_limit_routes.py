"""Limits and locks over HTTP, and what they do to submissions (J25, N5)."""

from __future__ import annotations

from typing import Any

INPUT = {"model": "llama"}


async def put(api: Any, path: str, **body: Any) -> Any:
    answer = await api.http.put(f"/v1/limits{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_limits_are_set_shown_and_removed(api: Any) -> None:
    made = await put(api, "/workspaces/default", max_running=2, weight=3)
    assert made == {
        "workspace": "default", "user": None, "max_running": 2, "max_queued": None, "weight": 3.0,
    }  # fmt: skip
    await put(api, "/every-user", max_queued=5)
    await api.submit("train", input=INPUT)
    page = (await api.http.get("/v1/limits")).json()
    assert [(each["workspace"], each["user"]) for each in page["limits"]] == [
        ("*", "*"), ("default", None),
    ]  # fmt: skip
    assert page["use"] == [{"workspace": "default", "user": "local", "running": 0, "waiting": 1}]
    await put(api, "/workspaces/default")
    assert len((await api.http.get("/v1/limits")).json()["limits"]) == 1


async def test_what_makes_no_sense_is_refused(api: Any) -> None:
    for path, body in (
        ("/workspaces/default", {"max_running": -1}),
        ("/workspaces/default", {"weight": 0}),
        ("/workspaces/default", {"max_runing": 1}),
        ("/workspaces/default/users/ann", {"weight": 2}),
        ("/workspaces/default/users/UPPER", {"max_running": 1}),
        ("/every-user", {"weight": 2}),
        ("/locks", {"name": "gpu", "max_running": 0}),
    ):
        answer = await api.http.put(f"/v1/limits{path}", json=body)
        assert answer.status_code == 422, (path, answer.text)


async def test_a_full_queue_answers_429_with_the_numbers(api: Any) -> None:
    await put(api, "/workspaces/default", max_queued=2)
    await api.submit("train", input=INPUT)
    batch = {"jobs": [{"operation": "train", "input": INPUT}] * 2}
    for path, body in (("/v1/jobs:batch", batch), ("/v1/operations/train", {"input": INPUT})):
        refused = await api.http.post(path, json=body)
        if refused.status_code == 202:
            continue  # the second job of two
        assert refused.status_code == 429
        assert refused.headers["content-type"] == "application/problem+json"
        assert float(refused.headers["retry-after"]) > 0
        assert "1 jobs waiting and may have 2; these would be 2 more" in refused.json()["detail"]
    assert len((await api.http.get("/v1/jobs")).json()["jobs"]) == 2


async def test_locks_are_set_listed_and_removed(api: Any) -> None:
    members = ["http://a:8000", "http://b:8000"]
    await put(api, "/locks", name="gpu0", members=members)
    locks = (await api.http.get("/v1/limits/locks")).json()["locks"]
    assert locks == [{"name": "gpu0", "max_running": 1, "members": members}]
    first = await api.submit("train", input=INPUT, concurrency_key=members[0])
    second = await api.submit("train", input=INPUT, concurrency_key=members[1])
    await api.claim()
    why = (await api.http.get(f"/v1/jobs/{second}/why")).json()
    assert (why["rule"], why["lock"], why["holders"]) == ("lock", "gpu0", [first])
    removed = await api.http.delete("/v1/limits/locks", params={"name": "gpu0"})
    assert removed.status_code == 204
    again = await api.http.delete("/v1/limits/locks", params={"name": "gpu0"})
    assert again.status_code == 404
    why = (await api.http.get(f"/v1/jobs/{second}/why")).json()
    assert (why["rule"], why["lane_position"]) == ("turn", 1)
