-- name: limits_version
-- Changes with each change of `limits`.
SELECT version FROM limits_version;

-- name: all_limits
-- Every limit; a short table, read when its version has changed.
SELECT workspace, user, max_running, max_queued, weight FROM limits ORDER BY workspace, user;

-- name: set_limit
-- An administrator's choice.
INSERT INTO limits (workspace, user, max_running, max_queued, weight)
VALUES (:workspace, :user, :max_running, :max_queued, :weight)
ON CONFLICT (workspace, user) DO UPDATE SET max_running = excluded.max_running,
    max_queued = excluded.max_queued, weight = excluded.weight;

-- name: delete_limit
-- What is less particular holds again.
DELETE FROM limits WHERE workspace = :workspace AND user = :user;

-- name: new_limits_version
-- Drawn, not counted: see the migration.
UPDATE limits_version SET version = random();

-- name: running_totals
-- Running jobs by workspace and user; never more than there are slots.
SELECT workspace, created_by, count(*) FROM jobs WHERE state = 'RUNNING'
GROUP BY workspace, created_by;

-- name: workspace_pending
-- Jobs of a workspace that have not started; one row a user.
SELECT coalesce(sum(jobs), 0) FROM pending_totals WHERE workspace = :workspace;

-- name: user_pending
-- Jobs of a user in a workspace that have not started.
SELECT jobs FROM pending_totals WHERE workspace = :workspace AND user = :user;

-- name: live_totals
-- Jobs of the whole store that have not started, and that run, with the bytes of each; one row a user,
-- and the running ones.
SELECT waiting.jobs, waiting.bytes, running.jobs, running.bytes
FROM (SELECT coalesce(sum(jobs), 0) AS jobs, coalesce(sum(bytes), 0) AS bytes FROM pending_totals)
     AS waiting,
     (SELECT count(*) AS jobs, coalesce(sum(submitted_bytes), 0) AS bytes FROM jobs
      WHERE state = 'RUNNING') AS running;

-- name: pending_totals
-- Who has jobs that have not started; one row a user.
SELECT workspace, user, jobs FROM pending_totals WHERE jobs > 0;
