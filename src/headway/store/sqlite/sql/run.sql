-- name: due
-- Timers that have run out (`scheduled`, `backoff`). The index holds only waiting timers.
SELECT sequence, needs_preconditions, lock_name FROM jobs INDEXED BY jobs_due
WHERE state = 'PENDING' AND wait_reason IN ('scheduled', 'backoff') AND run_at_us <= :now_us
ORDER BY run_at_us LIMIT :limit;

-- name: next_run_at
-- When the next timer runs out; one step in the same index.
SELECT run_at_us FROM jobs INDEXED BY jobs_due
WHERE state = 'PENDING' AND wait_reason IN ('scheduled', 'backoff')
ORDER BY run_at_us LIMIT 1;

-- name: end_future_backoffs
-- Backoffs that began in the future: the wall clock was set back. Reads the waiting timers only; the
-- IN is the index's own, without which SQLite does not see that the index will do.
UPDATE jobs INDEXED BY jobs_due SET run_at_us = :now_us
WHERE state = 'PENDING' AND wait_reason IN ('scheduled', 'backoff') AND run_at_us > :now_us
      AND wait_reason = 'backoff' AND waiting_since_us > :now_us;

-- name: make_wait
-- Put a pending job into another line. `waiting_since_us` starts anew: queue wait counts from it.
UPDATE jobs SET wait_reason = :wait_reason, wait_detail = :wait_detail, run_at_us = NULL,
    waiting_since_us = :now_us, needs_preconditions = :needs_preconditions
WHERE sequence = :sequence AND state = 'PENDING';

-- name: claim
-- The claim: one statement makes the chosen heads of the queue RUNNING, so that no job can be out of
-- the queue without being somebody's. Chosen in the same transaction; the condition stands here too.
-- The payload comes along, because each further statement costs the thread its turn; a trigger writes
-- the event. NOT INDEXED: by primary key, whatever the planner thinks of the condition.
UPDATE jobs NOT INDEXED SET state = 'RUNNING', wait_reason = NULL, wait_detail = NULL,
    run_at_us = NULL, attempt = attempt + 1, owner = :owner, lease_until_ns = :lease_until_ns,
    started_at_us = :now_us, progress_json = NULL
WHERE sequence IN (SELECT value FROM json_each(:chosen_json))
      AND state = 'PENDING' AND wait_reason = 'queued'
RETURNING {job}, waiting_since_us,
    (SELECT input_json FROM payloads WHERE payloads.sequence = jobs.sequence),
    (SELECT terms_json FROM payloads WHERE payloads.sequence = jobs.sequence);

-- name: renew
-- Fenced: only the attempt that is current, under the owner that claimed it.
UPDATE jobs SET lease_until_ns = :lease_until_ns
WHERE id = :job_id AND attempt = :attempt AND owner = :owner AND state = 'RUNNING';

-- name: set_progress
-- Fenced like every write of an attempt.
UPDATE jobs SET progress_json = :progress_json
WHERE id = :job_id AND attempt = :attempt AND owner = :owner AND state = 'RUNNING';

-- name: current
-- The running attempt that a claim speaks of; no row when the claim is stale (fencing).
SELECT {job} FROM jobs
WHERE id = :job_id AND attempt = :attempt AND owner = :owner AND state = 'RUNNING';

-- name: running
-- The attempts of one owner.
SELECT id, attempt, owner FROM jobs WHERE state = 'RUNNING' AND owner = :owner;

-- name: cancel_requested
-- The attempts of one owner that somebody wants cancelled.
SELECT id, attempt, owner FROM jobs
WHERE state = 'RUNNING' AND owner = :owner AND cancel_requested_at_us IS NOT NULL;

-- name: owners
-- Who runs anything at all; running jobs are few.
SELECT DISTINCT owner FROM jobs WHERE state = 'RUNNING';

-- name: lease_over
-- Attempts that nobody keeps alive any more.
SELECT {job} FROM jobs WHERE state = 'RUNNING' AND lease_until_ns <= :now_ns;

-- name: owned
-- Attempts of an owner that is known to be dead.
SELECT {job} FROM jobs WHERE state = 'RUNNING' AND owner = :owner;
