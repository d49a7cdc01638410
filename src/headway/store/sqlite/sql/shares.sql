-- name: ready_lines
-- What a claim chooses from, in one statement: first a row that says whether timers have run out and
-- which limits hold; then the first jobs of each line (a user's in a workspace) of the lanes, with the
-- virtual times. A step of the index finds a line's head, whatever the lengths of the lines. Two
-- subqueries, because SQLite seeks a pair by >= and then walks all of the line that it is to pass.
WITH RECURSIVE line (lane, head) AS (
    SELECT wanted.value, (
        SELECT sequence FROM jobs INDEXED BY jobs_ready
        WHERE state = 'PENDING' AND wait_reason = 'queued' AND lane = wanted.value
        ORDER BY workspace, created_by, priority DESC, sequence LIMIT 1
    ) FROM json_each(:lanes_json) AS wanted
    UNION ALL
    SELECT line.lane, coalesce((
        SELECT further.sequence FROM jobs AS further INDEXED BY jobs_ready
        WHERE further.state = 'PENDING' AND further.wait_reason = 'queued'
              AND further.lane = line.lane AND further.workspace = first.workspace
              AND further.created_by > first.created_by
        ORDER BY further.created_by, further.priority DESC, further.sequence LIMIT 1
    ), (
        SELECT further.sequence FROM jobs AS further INDEXED BY jobs_ready
        WHERE further.state = 'PENDING' AND further.wait_reason = 'queued'
              AND further.lane = line.lane AND further.workspace > first.workspace
        ORDER BY further.workspace, further.created_by, further.priority DESC, further.sequence
        LIMIT 1
    )) FROM line CROSS JOIN jobs AS first ON first.sequence = line.head
)
SELECT NULL, EXISTS (
    SELECT 1 FROM jobs INDEXED BY jobs_due
    WHERE state = 'PENDING' AND wait_reason IN ('scheduled', 'backoff') AND run_at_us <= :now_us
), (SELECT version FROM limits_version), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
UNION ALL
SELECT line.lane, first.workspace, first.created_by, everyone.clock, lab.tag, lab.clock, own.tag,
       -waiter.priority, waiter.sequence, waiter.operation, waiter.lock_name
FROM line
CROSS JOIN jobs AS first ON first.sequence = line.head
LEFT JOIN shares AS everyone
    ON everyone.resource = 'lane ' || line.lane AND everyone.workspace = '' AND everyone.user = ''
LEFT JOIN shares AS lab
    ON lab.resource = 'lane ' || line.lane AND lab.workspace = first.workspace AND lab.user = ''
LEFT JOIN shares AS own
    ON own.resource = 'lane ' || line.lane AND own.workspace = first.workspace
       AND own.user = first.created_by
CROSS JOIN jobs AS waiter ON waiter.sequence IN (
    SELECT sequence FROM jobs INDEXED BY jobs_ready
    WHERE state = 'PENDING' AND wait_reason = 'queued' AND lane = line.lane
          AND workspace = first.workspace AND created_by = first.created_by
    ORDER BY priority DESC, sequence LIMIT :limit
);

-- name: ready_more
-- Further jobs of one line of a lane.
SELECT -priority, sequence, operation, lock_name FROM jobs INDEXED BY jobs_ready
WHERE state = 'PENDING' AND wait_reason = 'queued' AND lane = :name
      AND workspace = :workspace AND created_by = :user
ORDER BY priority DESC, sequence LIMIT :limit OFFSET :offset;

-- name: lock_lines
-- The same for those who want a lock: the first jobs of each line, with the virtual times.
WITH RECURSIVE line (head) AS (
    SELECT (
        SELECT sequence FROM jobs INDEXED BY jobs_lock_line
        WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND lock_name IS NOT NULL
              AND lock_name = :lock
        ORDER BY workspace, created_by, priority DESC, sequence LIMIT 1
    )
    UNION ALL
    SELECT coalesce((
        SELECT further.sequence FROM jobs AS further INDEXED BY jobs_lock_line
        WHERE further.state = 'PENDING' AND further.wait_reason IN ('queued', 'locked')
              AND further.lock_name IS NOT NULL AND further.lock_name = :lock
              AND further.workspace = first.workspace AND further.created_by > first.created_by
        ORDER BY further.created_by, further.priority DESC, further.sequence LIMIT 1
    ), (
        SELECT further.sequence FROM jobs AS further INDEXED BY jobs_lock_line
        WHERE further.state = 'PENDING' AND further.wait_reason IN ('queued', 'locked')
              AND further.lock_name IS NOT NULL AND further.lock_name = :lock
              AND further.workspace > first.workspace
        ORDER BY further.workspace, further.created_by, further.priority DESC, further.sequence
        LIMIT 1
    )) FROM line CROSS JOIN jobs AS first ON first.sequence = line.head
)
SELECT :lock, first.workspace, first.created_by, everyone.clock, lab.tag, lab.clock, own.tag,
       -waiter.priority, waiter.sequence, waiter.operation, waiter.lock_name
FROM line
CROSS JOIN jobs AS first ON first.sequence = line.head
LEFT JOIN shares AS everyone
    ON everyone.resource = 'lock ' || :lock AND everyone.workspace = '' AND everyone.user = ''
LEFT JOIN shares AS lab
    ON lab.resource = 'lock ' || :lock AND lab.workspace = first.workspace AND lab.user = ''
LEFT JOIN shares AS own
    ON own.resource = 'lock ' || :lock AND own.workspace = first.workspace
       AND own.user = first.created_by
CROSS JOIN jobs AS waiter ON waiter.sequence IN (
    SELECT sequence FROM jobs INDEXED BY jobs_lock_line
    WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND lock_name IS NOT NULL
          AND lock_name = :lock AND workspace = first.workspace AND created_by = first.created_by
    ORDER BY priority DESC, sequence LIMIT :limit
);

-- name: lock_more
-- Further jobs of one line of a lock.
SELECT -priority, sequence, operation, lock_name FROM jobs INDEXED BY jobs_lock_line
WHERE state = 'PENDING' AND wait_reason IN ('queued', 'locked') AND lock_name IS NOT NULL
      AND lock_name = :name AND workspace = :workspace AND created_by = :user
ORDER BY priority DESC, sequence LIMIT :limit OFFSET :offset;

-- name: save_shares
-- The virtual times that a choice has moved on.
INSERT INTO shares (resource, workspace, user, tag, clock)
SELECT :resource, value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM json_each(:shares_json) WHERE true
ON CONFLICT (resource, workspace, user) DO UPDATE SET tag = excluded.tag, clock = excluded.clock;

-- name: forget_shares
-- Nobody waits for the lock: there is nothing to be fair about. Locks come and go; their rows must.
DELETE FROM shares WHERE resource = :resource;
