-- name: key_limit
-- How many jobs with this key may run; no row means one.
SELECT max_running FROM concurrency_limits WHERE key = :key;

-- name: set_key_limit
-- An administrator's choice.
INSERT INTO concurrency_limits (key, max_running) VALUES (:key, :max_running)
ON CONFLICT (key) DO UPDATE SET max_running = excluded.max_running;

-- name: key_held
-- How many hold the key. The index holds only running jobs with a key.
SELECT count(*) FROM jobs INDEXED BY jobs_key_held
WHERE state = 'RUNNING' AND concurrency_key IS NOT NULL AND concurrency_key = :key;

-- name: key_holders
-- Who they are.
SELECT id FROM jobs INDEXED BY jobs_key_held
WHERE state = 'RUNNING' AND concurrency_key IS NOT NULL AND concurrency_key = :key;

-- name: key_line
-- The head of the key's line, in queue order: as many as may run.
SELECT sequence, wait_reason FROM jobs INDEXED BY jobs_key_line
WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND concurrency_key IS NOT NULL
      AND concurrency_key = :key
ORDER BY priority DESC, sequence LIMIT :limit;

-- name: key_head
-- The jobs of the key that are queued now; at most as many as its limit, plus newcomers.
SELECT sequence FROM jobs INDEXED BY jobs_key_head
WHERE state = 'PENDING' AND wait_reason = 'queued' AND concurrency_key IS NOT NULL
      AND concurrency_key = :key;

-- name: set_wait_reason
-- Between `queued` and `locked`; the wait goes on, so its start stays.
UPDATE jobs SET wait_reason = :wait_reason WHERE sequence = :sequence AND state = 'PENDING';

-- name: key_position
-- Rank within the key's line.
SELECT count(*) FROM jobs INDEXED BY jobs_key_line
WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND concurrency_key IS NOT NULL
      AND concurrency_key = :key AND (priority > :priority
      OR (priority = :priority AND sequence <= :sequence));
