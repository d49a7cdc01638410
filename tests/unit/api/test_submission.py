"""Submitting: what is accepted, what is refused, and that a repeated POST launches once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from headway.jobs import load_operations
from headway.jobs.invocation import parse_request

OPERATIONS = Path(__file__).with_name("operations_for_api.py")
TRAIN = {"model": "llama"}


async def problem(api: Any, path: str, status: int, **request: Any) -> dict[str, Any]:
    answer = await api.http.post(path, **request)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["status"] == status
    assert body["request_id"] == answer.headers["x-request-id"]
    return body


async def test_a_submission_is_accepted_with_its_address(api: Any) -> None:
    answer = await api.http.post("/v1/operations/train", json={"input": TRAIN, "priority": 3})
    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}"
    assert (await api.http.get(answer.headers["location"])).json() == job
    assert job["state"] == "PENDING"
    assert job["priority"] == 3
    assert job["timeout_s"] == 3600


async def test_the_input_is_stored_as_it_was_written(api: Any) -> None:
    """A validated copy would turn a secret into asterisks and lose what a model ignores."""
    body = b'{ "input": {"model":"l\\u00e4ma",  "epochs": 4.0} }'
    answer = await api.http.post(
        "/v1/operations/train", content=body, headers={"content-type": "application/json"}
    )
    payload = await api.store.payload(answer.json()["id"])
    assert payload.input_json == '{"model":"l\\u00e4ma",  "epochs": 4.0}'


async def test_an_operation_without_required_input_needs_none(api: Any) -> None:
    job_id = await api.submit("nothing")
    assert (await api.store.payload(job_id)).input_json == "{}"
    await api.submit("greet", input={"name": "Ada"})


WRONG_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"input": {"model": "llama", "epochs": "many"}}, "input.epochs"),
    ({"input": {}}, "input.model"),
    ({}, "input"),
    ({"input": TRAIN, "prioritee": 1}, "prioritee"),
    ({"input": TRAIN, "priority": 10_000}, "priority"),
    ({"input": TRAIN, "timeout_s": 0}, "timeout_s"),
    ({"input": TRAIN, "not_before": "2026-12-01T00:00:00"}, "not_before"),
    ({"input": TRAIN, "env": {"A B": "x"}}, "env.A B.[key]"),
    ({"input": TRAIN, "env": {"LD_PRELOAD": "/tmp/x.so"}}, "env"),
    ({"input": TRAIN, "env": {"PATH": "/tmp"}}, "env"),
    ({"input": TRAIN, "env": {"HEADWAY_STORE": "x"}}, "env"),
    ({"input": TRAIN, "config": {"precision": 8}}, "config.precision"),
    ({"input": TRAIN, "labels": {"a": 1}}, "labels.a"),
    ({"input": TRAIN, "labels": {"a": "nul\x00"}}, "labels.a"),
    ({"input": TRAIN, "preconditions": [{"name": "moon_full"}]}, "preconditions.0"),
    (
        {"input": TRAIN, "preconditions": [{"name": "gpu_free", "arguments": {"x": 1}}]},
        "preconditions.0",
    ),
]


async def test_a_wrong_field_is_answered_422_with_its_path(api: Any) -> None:
    """J13, J10, trap 12: and nothing is stored."""
    for body, path in WRONG_FIELDS:
        refusal = await problem(api, "/v1/operations/train", 422, json=body)
        assert [error["path"] for error in refusal["errors"]] == [path], body
    assert (await api.http.get("/v1/jobs")).json()["jobs"] == []


NOT_JSON = [
    b"{",
    b"",
    b"null",
    b"[]",
    b'{"input": {"model": NaN}}',
    b'{"input": {"model": "x"}, "priority": 1e999}',
    b'{"input": {"model": "x"}, "labels": {"\\ud800": "x"}}',
    b'{"input": {"model": "\xff"}}',
    b'{"input": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"input": {"model": "x", "epochs": ' + b"9" * 5_000 + b"}}",
]


async def test_what_is_not_json_is_refused_and_never_a_500(api: Any) -> None:
    for content in NOT_JSON:
        answer = await api.http.post(
            "/v1/operations/train", content=content, headers={"content-type": "application/json"}
        )
        assert answer.status_code in {400, 422}, content[:40]
        assert answer.headers["content-type"] == "application/problem+json"


async def test_json_that_the_jobs_process_could_not_read_is_refused_with_what_to_do(
    api: Any,
) -> None:
    """It was accepted, and the job failed: Python's parser reads five times as deep as pydantic's.

    What no route could read was refused in words that told nobody why.
    """
    paths = {
        "/v1/operations/train": b'{"input": {"model": "x", "notes": %s}}',
        "/v1/jobs:batch": b'{"jobs": [{"operation": "train", "input": {"notes": %s}}]}',
        "/v1/users": b'{"name": %s}',
    }
    for path, body in paths.items():
        outer = body.count(b"[") + body.count(b"{")
        for levels in (201, 254, 300, 950, 20_000):
            inner = levels - outer
            content = body % (b"[" * inner + b"]" * inner)
            for kind in ("application/json", "Application/JSON"):
                headers = {"content-type": kind}
                refusal = await problem(api, path, 422, content=content, headers=headers)
                assert "deeper than 200 levels" in refusal["detail"], (path, levels, kind)
                assert "as a text" in refusal["detail"]


async def test_the_deepest_json_that_is_accepted_is_read_by_the_jobs_process(api: Any) -> None:
    nested = b"[" * 198 + b"]" * 198
    answer = await api.http.post(
        "/v1/operations/keep", content=b'{"input": {"anything": %s}}' % nested,
        headers={"content-type": "application/json"},
    )  # fmt: skip
    assert answer.status_code == 202, answer.text
    [operation] = [each for each in load_operations(str(OPERATIONS)) if each.name == "keep"]
    payload = await api.store.payload(answer.json()["id"])
    parse_request(operation, payload.input_json.encode())


async def test_a_body_without_a_json_content_type_is_refused(api: Any) -> None:
    """A browser's form post to a server on loopback must not launch a job."""
    await problem(
        api, "/v1/operations/train", 422, content=b'{"input":{"model":"x"}}',
        headers={"content-type": "text/plain"},
    )  # fmt: skip


async def test_a_body_over_the_limit_is_answered_413(api: Any) -> None:
    body = {"input": {"model": "x" * 70_000}}
    await problem(api, "/v1/operations/train", 413, json=body)


async def test_a_streamed_body_over_the_limit_is_answered_413(api: Any) -> None:
    async def endless() -> Any:
        for _ in range(100):
            yield b" " * 1024

    await problem(
        api, "/v1/operations/train", 413, content=endless(),
        headers={"content-type": "application/json"},
    )  # fmt: skip


async def test_an_unknown_operation_is_named(api: Any) -> None:
    refusal = await problem(api, "/v1/operations/trian", 404, json={})
    assert refusal["detail"] == (
        "there is no operation 'trian'; `headway operations` or GET /v1/operations lists them"
    )


async def test_the_same_key_and_body_give_the_same_job(api: Any) -> None:
    """J14, trap 15; spaces and the order of fields make no other body."""
    headers = {"idempotency-key": "k1", "content-type": "application/json"}
    bodies = [
        b'{"input":{"model":"x","epochs":2},"priority":1}',
        b'{"priority": 1, "input": {"epochs": 2, "model": "x"}}',
    ]
    answers = [
        await api.http.post("/v1/operations/train", content=body, headers=headers)
        for body in bodies
    ]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json()["id"] == answers[1].json()["id"]


async def test_the_same_key_and_another_body_is_a_conflict(api: Any) -> None:
    headers = {"idempotency-key": "k1"}
    first = await api.http.post("/v1/operations/train", json={"input": TRAIN}, headers=headers)
    refusal = await problem(
        api, "/v1/operations/train", 409, json={"input": {"model": "other"}}, headers=headers
    )
    assert first.json()["id"] in refusal["detail"]
    await problem(api, "/v1/operations/greet", 409, json={}, headers=headers)


async def test_fifty_concurrent_posts_with_one_key_make_one_job(api: Any) -> None:
    """J14: safe under 50 concurrent posts."""
    answers = await asyncio.gather(
        *(
            api.http.post(
                "/v1/operations/train", json={"input": TRAIN}, headers={"idempotency-key": "k"}
            )
            for _ in range(50)
        )
    )
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len((await api.http.get("/v1/jobs")).json()["jobs"]) == 1


async def test_a_batch_is_stored_in_its_order(api: Any) -> None:
    jobs = [{"operation": "train", "input": TRAIN | {"epochs": n}} for n in (1, 2, 3)]
    answer = await api.http.post("/v1/jobs:batch", json={"jobs": jobs})
    assert answer.status_code == 202
    ids = [job["id"] for job in answer.json()["jobs"]]
    inputs = [(await api.store.payload(job_id)).input_json for job_id in ids]
    assert [f'"epochs":{n}' in text for n, text in enumerate(inputs, 1)] == [True] * 3


async def test_one_wrong_job_refuses_the_whole_batch(api: Any) -> None:
    for wrong, path in (
        ({"operation": "train", "input": {"model": "x", "epochs": 0}}, "jobs.1.input.epochs"),
        ({"operation": "nope"}, "jobs.1.operation"),
        ({"operation": "nothing", "env": {"PYTHONPATH": "x"}}, "jobs.1.env"),
    ):
        jobs = [{"operation": "train", "input": TRAIN}, wrong]
        refusal = await problem(api, "/v1/jobs:batch", 422, json={"jobs": jobs})
        assert [error["path"] for error in refusal["errors"]] == [path]
    assert (await api.http.get("/v1/jobs")).json()["jobs"] == []


async def test_a_batch_with_a_used_key_stores_nothing_new(api: Any) -> None:
    keyed = {"operation": "train", "input": TRAIN, "idempotency_key": "k"}
    await api.http.post("/v1/jobs:batch", json={"jobs": [keyed]})
    other = keyed | {"input": {"model": "other"}}
    await problem(api, "/v1/jobs:batch", 409, json={"jobs": [{"operation": "nothing"}, other]})
    assert len((await api.http.get("/v1/jobs")).json()["jobs"]) == 1


async def test_options_shorten_what_the_operation_allows_and_never_lengthen_it(api: Any) -> None:
    job_id = await api.submit(input=TRAIN, timeout_s=7200)
    assert (await api.http.get(f"/v1/jobs/{job_id}")).json()["timeout_s"] == 3600
    job_id = await api.submit(input=TRAIN, timeout_s=60, max_attempts=7, ignore_result=True)
    payload = await api.store.payload(job_id)
    assert (await api.http.get(f"/v1/jobs/{job_id}")).json()["timeout_s"] == 60
    assert payload.retry.max_attempts == 7
    assert not payload.keep_result


async def test_the_operations_own_concurrency_key_holds_unless_another_is_given(api: Any) -> None:
    own = await api.submit("greet", input={"name": "Ada"})
    given = await api.submit("greet", input={"name": "Ada"}, concurrency_key="gpu-1")
    keys = [(await api.http.get(f"/v1/jobs/{i}")).json()["concurrency_key"] for i in (own, given)]
    assert keys == ["Ada", "gpu-1"]


async def test_a_delayed_job_says_when_it_may_run(api: Any) -> None:
    job_id = await api.submit(input=TRAIN, not_before="2099-01-01T00:00:00Z")
    job = (await api.http.get(f"/v1/jobs/{job_id}")).json()
    why = (await api.http.get(f"/v1/jobs/{job_id}/why")).json()
    assert job["wait_reason"] == "scheduled"
    assert why["until"] == "2099-01-01T00:00:00Z"
    assert why["text"]


async def test_what_the_client_says_of_its_name_is_not_believed(api: Any) -> None:
    """Trap 14: the caller comes from authentication alone."""
    headers = {"x-user": "root", "x-forwarded-user": "root", "authorization": "Basic cm9vdDo="}
    answer = await api.http.post("/v1/operations/nothing", json={}, headers=headers)
    assert answer.json()["created_by"] == "local"
    await problem(api, "/v1/operations/nothing", 422, json={"created_by": "root"})


async def test_operations_are_listed_with_their_schemas(api: Any) -> None:
    operations = (await api.http.get("/v1/operations")).json()["operations"]
    train = (await api.http.get("/v1/operations/train")).json()
    assert [each["name"] for each in operations] == ["greet", "keep", "nothing", "pause", "train"]
    assert train in operations
    assert train["input_schema"]["properties"]["epochs"]["maximum"] == 100
    assert train["result_schema"]["properties"]["loss"]["type"] == "number"
    assert (train["max_attempts"], train["retryable"], train["lane"]) == (3, True, "long")


async def test_a_full_inline_lane_is_answered_503_and_queues_nothing(api: Any) -> None:
    """J4: a limit of 2 here; then Retry-After, never a silent queue."""
    running = [await api.submit("pause") for _ in range(2)]
    answer = await api.http.post("/v1/operations/pause", json={})
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["detail"] == "the inline lane is full; send the request again later"
    assert len((await api.http.get("/v1/jobs")).json()["jobs"]) == 2
    for job_id in running:
        await api.http.post(f"/v1/jobs/{job_id}/cancel")
        job = (await api.http.get(f"/v1/jobs/{job_id}?wait=10s")).json()
        assert job["state"] == "CANCELLED"
    answer = await api.http.post("/v1/operations/pause?wait=10s", json={"input": {"seconds": 0}})
    assert answer.json()["result"] == "done"


async def test_a_client_that_hangs_up_cancels_where_the_operation_says_so(api: Any) -> None:
    """J4: `pause` is declared with cancel_on_disconnect."""
    waiting = asyncio.create_task(api.http.post("/v1/operations/pause?wait=60s", json={}))
    async with asyncio.timeout(10):
        while api.live.watched == 0:  # noqa: ASYNC110 -- nothing announces it
            await asyncio.sleep(0.01)
    [job] = (await api.http.get("/v1/jobs")).json()["jobs"]
    waiting.cancel()
    ended = (await api.http.get(f"/v1/jobs/{job['id']}?wait=10s")).json()
    assert ended["state"] == "CANCELLED"
