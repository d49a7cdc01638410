-- name: end_job
-- The end of a job. Callers have checked the fence in the same transaction; the state is checked
-- once more, because a terminal state must never be overwritten (trap 6). A trigger writes the event
-- and the total. The version of the limits comes along, to spare a statement.
UPDATE jobs SET state = :state, outcome = :outcome, error_json = :error_json,
    wait_reason = NULL, wait_detail = NULL, run_at_us = NULL, owner = NULL, lease_until_ns = NULL,
    ended_at_us = :now_us, crashes = crashes + :crashed, kept_bytes = kept_bytes + :kept_bytes
WHERE sequence = :sequence AND state IN ('PENDING', 'RUNNING')
RETURNING {job}, (SELECT version FROM limits_version);

-- name: finish_attempt
-- The same for the current attempt, fenced in the one statement: no row when the claim is stale.
UPDATE jobs SET state = :state, outcome = :outcome, error_json = :error_json,
    wait_reason = NULL, wait_detail = NULL, run_at_us = NULL, owner = NULL, lease_until_ns = NULL,
    ended_at_us = :now_us, crashes = crashes + :crashed, kept_bytes = kept_bytes + :kept_bytes
WHERE id = :job_id AND attempt = :attempt AND owner = :owner AND state = 'RUNNING'
RETURNING {job}, (SELECT version FROM limits_version);

-- name: requeue
-- From RUNNING back to PENDING: retry, drain, lease lost.
UPDATE jobs SET state = 'PENDING', wait_reason = :wait_reason, wait_detail = :wait_detail,
    waiting_since_us = :now_us, run_at_us = :run_at_us, owner = NULL, lease_until_ns = NULL,
    error_json = :error_json, crashes = crashes + :crashed, released = released + :released,
    kept_bytes = kept_bytes + :kept_bytes
WHERE sequence = :sequence AND state = 'RUNNING'
RETURNING {job}, (SELECT version FROM limits_version);

-- name: insert_attempt
-- The record of an ended attempt; its primary key makes two ends of one attempt impossible.
INSERT INTO attempts (
    sequence, attempt, owner, started_at_us, ended_at_us, outcome, error_json, usage_json
) VALUES (
    :sequence, :attempt, :owner, :started_at_us, :ended_at_us, :outcome, :error_json, :usage_json
);

-- name: insert_result
-- Written in the transaction that makes the job SUCCEEDED: never one without the other.
INSERT INTO results (sequence, json, file) VALUES (:sequence, :json, :file);

-- name: flag_cancel
-- Durable intent; the worker acts on it. The first request's time stays.
UPDATE jobs SET cancel_requested_at_us = coalesce(cancel_requested_at_us, :now_us)
WHERE sequence = :sequence AND state IN ('PENDING', 'RUNNING');
