-- name: lock_limit
-- How many may hold this lock; no row means one.
SELECT max_running FROM concurrency_limits WHERE key = :lock;

-- name: set_lock_limit
-- An administrator's choice.
INSERT INTO concurrency_limits (key, max_running) VALUES (:lock, :max_running)
ON CONFLICT (key) DO UPDATE SET max_running = excluded.max_running;

-- name: forget_lock_limit
-- Back to one.
DELETE FROM concurrency_limits WHERE key = :lock;

-- name: lock_limits
-- Those that an administrator set; a short table.
SELECT key, max_running FROM concurrency_limits;

-- name: lock_members
-- Which keys share a lock; a short table.
SELECT member, lock_name FROM lock_members;

-- name: join_lock
-- A key belongs to one lock.
INSERT INTO lock_members (member, lock_name) VALUES (:member, :lock)
ON CONFLICT (member) DO UPDATE SET lock_name = excluded.lock_name;

-- name: leave_lock
-- The key is a lock of its own again.
DELETE FROM lock_members WHERE member = :member;

-- name: rename_locks
-- Live jobs follow their key into its lock or out of it, those that run included: they hold it from
-- now on. An administrator's act; reads all live jobs.
UPDATE jobs SET lock_name = coalesce(
    (SELECT lock_name FROM lock_members WHERE member = concurrency_key), concurrency_key
)
WHERE state IN ('PENDING', 'RUNNING') AND concurrency_key IS NOT NULL;

-- name: lock_held
-- How many hold it. The index holds only running jobs with a lock.
SELECT count(*) FROM jobs INDEXED BY jobs_lock_held
WHERE state = 'RUNNING' AND lock_name IS NOT NULL AND lock_name = :lock;

-- name: lock_head
-- The jobs of the lock that are queued now; at most as many as its limit, plus newcomers.
SELECT sequence FROM jobs INDEXED BY jobs_lock_head
WHERE state = 'PENDING' AND wait_reason = 'queued' AND lock_name IS NOT NULL AND lock_name = :lock;

-- name: set_wait_reason
-- Between `queued` and `locked`; the wait goes on, so its start stays.
UPDATE jobs SET wait_reason = :wait_reason WHERE sequence = :sequence AND state = 'PENDING';

-- name: locks_waited_for
-- The locks that jobs of a workspace (NULL: of any) wait for; one step a lock in an index.
WITH RECURSIVE waited (lock_name) AS (
    SELECT min(lock_name) FROM jobs INDEXED BY jobs_lock_waiters
    WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND lock_name IS NOT NULL
          AND workspace = :workspace
    UNION ALL
    SELECT (
        SELECT min(jobs.lock_name) FROM jobs INDEXED BY jobs_lock_waiters
        WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked')
              AND jobs.lock_name IS NOT NULL AND workspace = :workspace
              AND jobs.lock_name > waited.lock_name
    ) FROM waited WHERE waited.lock_name IS NOT NULL
)
SELECT lock_name FROM waited WHERE lock_name IS NOT NULL;

-- name: all_locks_waited_for
-- The locks that any job waits for; one step a lock in an index.
WITH RECURSIVE waited (lock_name) AS (
    SELECT min(lock_name) FROM jobs INDEXED BY jobs_lock_line
    WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND lock_name IS NOT NULL
    UNION ALL
    SELECT (
        SELECT min(jobs.lock_name) FROM jobs INDEXED BY jobs_lock_line
        WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked')
              AND jobs.lock_name IS NOT NULL AND jobs.lock_name > waited.lock_name
    ) FROM waited WHERE waited.lock_name IS NOT NULL
)
SELECT lock_name FROM waited WHERE lock_name IS NOT NULL;
