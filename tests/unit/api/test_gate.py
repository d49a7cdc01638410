"""Who is inside has to leave when its access ends; who is denied is counted."""

from __future__ import annotations

import asyncio
from typing import Any

from accounts import ACT, add_member, add_token, add_user, add_workspace, bearer_of, id_of

from headway.access.accounts import DENIED
from headway.access.roles import Role

PATIENCE_S = 30.0


async def prepared(api: Any) -> tuple[str, str]:
    """A member of `lab` with a waiting job there: the token and the job."""
    await add_workspace(api.store.accounts, "lab")
    token = await add_member(api.store.accounts, "lab", "ann", Role.USER)
    api.entrance.changed()
    answer = await api.http.post("/v1/operations/train", json=TRAIN, headers=bearer_of(token))
    return token, answer.json()["id"]


TRAIN = {"input": {"model": "llama"}}


async def read_to_the_end(api: Any, path: str, token: str, opened: asyncio.Event) -> bytes:
    received = b""
    async with api.http.stream("GET", path, headers=bearer_of(token, "lab")) as answer:
        assert answer.status_code == 200
        async for piece in answer.aiter_raw():
            received += piece
            opened.set()
    return received


async def open_streams(api: Any, token: str, job_id: str) -> list[asyncio.Task[bytes]]:
    tasks, events = [], []
    for path in (f"/v1/jobs/{job_id}/logs/stream", "/v1/jobs/stream"):
        events.append(asyncio.Event())
        tasks.append(asyncio.create_task(read_to_the_end(api, path, token, events[-1])))
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(event.wait() for event in events))
    return tasks


async def test_a_revoked_token_ends_its_open_streams_at_once(api: Any) -> None:
    token, job_id = await prepared(api)
    streams = await open_streams(api, token, job_id)
    waiting = asyncio.create_task(
        api.http.get(f"/v1/jobs/{job_id}?wait=60s", headers=bearer_of(token))
    )
    while api.live.watched == 0 or len(api.entrance.gate._inside) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await api.store.accounts.revoke_token(id_of(token), ACT)
    api.entrance.changed()
    async with asyncio.timeout(PATIENCE_S):
        ends = await asyncio.gather(*streams)
        answer = await waiting
    assert all(b"event: end" not in received for received in ends)
    assert answer.status_code == 401
    again = await api.http.get(f"/v1/jobs/{job_id}/logs/stream", headers=bearer_of(token))
    assert again.status_code == 401
    assert "was revoked" in again.json()["detail"]


async def test_a_removed_member_s_streams_end_even_when_no_bell_rings(api: Any) -> None:
    """As when another process did it and its ring was lost: the heartbeat finds out."""
    token, job_id = await prepared(api)
    streams = await open_streams(api, token, job_id)
    await api.store.accounts.remove_member("lab", "ann", ACT)
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*streams)


async def test_a_change_elsewhere_leaves_streams_alone(api: Any) -> None:
    token, job_id = await prepared(api)
    [log, feed] = await open_streams(api, token, job_id)
    await add_user(api.store.accounts, "bob")
    await add_workspace(api.store.accounts, "shop")
    await api.store.accounts.set_member("shop", "ann", Role.USER, ACT)  # of two by now
    await api.store.accounts.set_member("lab", "ann", Role.VIEWER, ACT)  # may still read
    api.entrance.changed()
    cancelled = await api.store.request_cancel(job_id, "test")
    assert cancelled == "cancelled"
    api.ring(job_id)
    async with asyncio.timeout(PATIENCE_S):
        assert b"event: end" in await log
    assert not feed.done()
    feed.cancel()
    await asyncio.gather(feed, return_exceptions=True)


async def test_the_first_account_ends_what_the_one_local_user_had_open(api: Any) -> None:
    job_id = await api.submit("nothing")
    opened = asyncio.Event()

    async def follow() -> None:
        async with api.http.stream("GET", f"/v1/jobs/{job_id}/logs/stream") as answer:
            async for _ in answer.aiter_raw():
                opened.set()

    following = asyncio.create_task(follow())
    async with asyncio.timeout(PATIENCE_S):
        await opened.wait()
        await add_user(api.store.accounts, "root", administrator=True)
        api.doorbell.ring("access")
        await following
    assert (await api.http.get("/v1/jobs")).status_code == 401


async def test_denials_are_counted_not_written_each(api: Any) -> None:
    token, _ = await prepared(api)
    for _ in range(25):
        await api.http.get("/v1/users", headers=bearer_of(token))
        await api.http.get("/v1/jobs")
        await api.http.get("/v1/jobs", headers=bearer_of(token, "default"))
    await api.entrance.trail.write()
    rows = await api.store.accounts.audit_log(action=DENIED)
    seen = {
        (row.event.act.user, row.event.subject, row.event.detail["status"]): row.event.count
        for row in rows
    }
    assert seen == {
        ("ann", "GET /v1/users", "403"): 25,
        ("-", "GET /v1/jobs", "401"): 25,
        ("ann", "GET /v1/jobs", "404"): 25,
    }
    assert all(row.event.act.address == "127.0.0.1" for row in rows)


async def test_denials_take_bounded_memory_and_lines(api: Any) -> None:
    trail = api.entrance.trail
    for number in range(500):
        trail.denied(None, f"10.0.{number % 250}.{number // 250}", "GET /v1/jobs", 401, None)
    await trail.write()
    rows = await api.store.accounts.audit_log(action=DENIED, limit=1000)
    assert len(rows) == 51
    assert sum(row.event.count for row in rows) == 500


async def test_no_access_token_is_in_an_answer_or_in_the_audit_log(api: Any) -> None:
    await add_user(api.store.accounts, "root", administrator=True)
    token = await add_token(api.store.accounts, "root")
    api.entrance.changed()
    secret = token.split("_")[2]
    for headers in (bearer_of(token + "x"), {"authorization": f"Basic {token}"}):
        answer = await api.http.get("/v1/me", headers=headers)
        assert answer.status_code == 401
        assert secret not in answer.text + repr(answer.headers)
    log = await api.http.get("/v1/audit", headers=bearer_of(token))
    assert log.status_code == 200
    assert secret not in log.text
