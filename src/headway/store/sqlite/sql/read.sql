-- name: get
-- By whole id.
SELECT {job} FROM jobs WHERE id = :id;

-- name: get_by_sequence
-- By primary key.
SELECT {job} FROM jobs WHERE sequence = :sequence;

-- name: find_prefix
-- Ids that start so: a range of the unique index ('~' sorts after every character of an id). A few
-- rows are enough to tell one from many.
SELECT {job} FROM jobs WHERE id >= :prefix AND id < :prefix || '~'
      AND (:workspace IS NULL OR workspace = :workspace)
ORDER BY id LIMIT :limit;

-- name: payload
-- What a job was asked to do.
SELECT input_json, terms_json FROM payloads
WHERE sequence = (SELECT sequence FROM jobs WHERE id = :id);

-- name: payload_by_sequence
-- The same, for a job just claimed.
SELECT input_json, terms_json FROM payloads WHERE sequence = :sequence;

-- name: result
-- A succeeded job's result.
SELECT json, file FROM results WHERE sequence = (SELECT sequence FROM jobs WHERE id = :id);

-- name: events
-- A job's history from a number on.
SELECT number, at_us, kind, attempt, data_json FROM events
WHERE sequence = (SELECT sequence FROM jobs WHERE id = :id) AND number > :after
ORDER BY number LIMIT :limit;

-- name: attempts
-- A job's ended attempts.
SELECT attempt, owner, started_at_us, ended_at_us, outcome, error_json, usage_json FROM attempts
WHERE sequence = (SELECT sequence FROM jobs WHERE id = :id) ORDER BY attempt;

-- name: workspace_position
-- Rank in the lane among the ready jobs of a workspace, for one that is too far back to foretell its
-- turn; costs as much as the workspace has ready jobs.
SELECT count(*) FROM jobs INDEXED BY jobs_ready
WHERE state = 'PENDING' AND wait_reason = 'queued' AND lane = :lane AND workspace = :workspace
      AND (priority > :priority OR (priority = :priority AND sequence <= :sequence));

-- name: running_jobs
-- All that runs; never more than there are slots.
SELECT id, operation, lane, workspace, created_by, lock_name, started_at_us, progress_json
FROM jobs WHERE state = 'RUNNING' ORDER BY sequence;

-- name: count_live
-- Live jobs by what they do; costs as much as there is live work, whatever has ended.
SELECT operation, lane, state, wait_reason, count(*) FROM jobs
WHERE state IN ('PENDING', 'RUNNING') GROUP BY operation, lane, state, wait_reason;

-- name: count_ended
-- The running totals.
SELECT operation, outcome, jobs FROM ended_totals;

-- name: waiting
-- Jobs that wait for preconditions, with them.
SELECT {job}, waiting_since_us, (
    SELECT terms_json FROM payloads WHERE payloads.sequence = jobs.sequence
) FROM jobs INDEXED BY jobs_preconditions
WHERE state = 'PENDING' AND wait_reason = 'precondition' ORDER BY sequence;

-- name: describe_wait
-- The words that `why` shows.
UPDATE jobs SET wait_detail = :detail
WHERE id = :id AND state = 'PENDING' AND wait_reason = 'precondition';

-- name: awaiting
-- A job that still waits for its preconditions; no row when it does not.
SELECT sequence, lock_name FROM jobs
WHERE id = :id AND state = 'PENDING' AND wait_reason = 'precondition';
