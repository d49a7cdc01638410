-- name: take_lease
-- Free, over, or one's own: then it is taken. The condition stands in the statement, so two owners
-- cannot both get it.
INSERT INTO leases (name, owner, lease_until_ns) VALUES (:name, :owner, :lease_until_ns)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, lease_until_ns = excluded.lease_until_ns
WHERE leases.owner = excluded.owner OR leases.lease_until_ns <= :now_ns
      OR leases.owner IN (SELECT value FROM json_each(:dead_json));

-- name: lease_owner
-- Who has a lease.
SELECT owner FROM leases WHERE name = :name;

-- name: record_period
-- Written after a system job has run, so that one whose process died runs again.
INSERT INTO periods (name, due_us) VALUES (:name, :due_us)
ON CONFLICT (name) DO UPDATE SET due_us = excluded.due_us;

-- name: last_period
-- The latest due time that ran.
SELECT due_us FROM periods WHERE name = :name;

-- name: ended_before
-- Ended jobs older than a time, oldest first.
SELECT id FROM jobs
WHERE ended_at_us IS NOT NULL AND ended_at_us < :before_us
      AND (:workspace IS NULL OR workspace = :workspace)
      AND workspace NOT IN (SELECT value FROM json_each(:besides_json))
ORDER BY ended_at_us, sequence LIMIT :limit;

-- name: ended_beyond
-- Ended jobs beyond the newest `max_jobs` jobs or `max_bytes` bytes, oldest first. Reads the
-- covering index only; run on the connection for long reads.
SELECT id FROM jobs WHERE sequence IN (
    SELECT sequence FROM (
        SELECT sequence, ended_at_us,
               row_number() OVER newest AS jobs_kept, sum(kept_bytes) OVER newest AS bytes_kept
        FROM jobs INDEXED BY jobs_ended
        WHERE ended_at_us IS NOT NULL AND (:workspace IS NULL OR workspace = :workspace)
              AND workspace NOT IN (SELECT value FROM json_each(:besides_json))
        WINDOW newest AS (ORDER BY ended_at_us DESC, sequence DESC)
    )
    WHERE jobs_kept > :max_jobs OR bytes_kept > :max_bytes
    ORDER BY ended_at_us, sequence LIMIT :limit
) ORDER BY ended_at_us, sequence;

-- name: deletable
-- A job that may be removed: only ended ones.
SELECT sequence, labels_json, workspace, idempotency_key FROM jobs
WHERE id = :id AND ended_at_us IS NOT NULL;

-- name: delete_job
-- The row itself; the statements below remove what hangs on it.
DELETE FROM jobs WHERE sequence = :sequence;

-- name: delete_payload
-- By primary key.
DELETE FROM payloads WHERE sequence = :sequence;

-- name: delete_result
-- By primary key.
DELETE FROM results WHERE sequence = :sequence;

-- name: delete_events
-- A range of the primary key.
DELETE FROM events WHERE sequence = :sequence;

-- name: delete_attempts
-- A range of the primary key.
DELETE FROM attempts WHERE sequence = :sequence;

-- name: delete_label
-- By primary key; the names and values come from the row.
DELETE FROM labels WHERE name = :name AND value = :value AND sequence = :sequence;

-- name: delete_idempotency
-- The key may be used anew once its job is gone.
DELETE FROM idempotency WHERE workspace = :workspace AND key = :key;
