-- name: insert_job
-- The row is the queue: once this is committed the job cannot be lost. A job with a concurrency key
-- enters as `locked`; `admit` then moves it to its lock's head if it belongs there. Triggers write the
-- event and count it. The version of the limits comes along, to spare a statement.
INSERT INTO jobs (
    id, operation, lane, workspace, created_by, state, wait_reason, wait_detail, waiting_since_us,
    run_at_us, needs_preconditions, priority, concurrency_key, lock_name, timeout_s, labels_json,
    retry_of, idempotency_key, created_at_us, kept_bytes, submitted_bytes
) VALUES (
    :id, :operation, :lane, :workspace, :created_by, 'PENDING', :wait_reason, :wait_detail, :now_us,
    :run_at_us, :needs_preconditions, :priority, :concurrency_key,
    coalesce((SELECT lock_name FROM lock_members WHERE member = :concurrency_key), :concurrency_key),
    :timeout_s, :labels_json, :retry_of, :idempotency_key, :now_us, :kept_bytes,
    :submitted_bytes
) RETURNING {job}, (SELECT version FROM limits_version);

-- name: insert_payload
-- Apart from the job's row, so that a claim or a renewal does not rewrite the input.
INSERT INTO payloads (sequence, input_json, terms_json) VALUES (:sequence, :input_json, :terms_json);

-- name: insert_label
-- One row a label; lists by label read it newest first.
INSERT INTO labels (name, value, sequence) VALUES (:name, :value, :sequence);

-- name: insert_idempotency
-- The primary key (workspace, key) is what makes two submissions with one key impossible.
INSERT INTO idempotency (workspace, key, fingerprint, sequence)
VALUES (:workspace, :key, :fingerprint, :sequence);

-- name: find_idempotency
-- What a key was used for before.
SELECT fingerprint, sequence FROM idempotency WHERE workspace = :workspace AND key = :key;

-- name: insert_event
-- Numbers ascend within a job; one writer, so reading the last one is safe.
INSERT INTO events (sequence, number, at_us, kind, attempt, data_json)
VALUES (
    :sequence,
    (SELECT coalesce(max(number), 0) + 1 FROM events WHERE sequence = :sequence),
    :at_us, :kind, :attempt, :data_json
);
