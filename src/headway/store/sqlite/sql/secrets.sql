-- name: put_secret
-- The creator stays, the value and its author change.
INSERT INTO secrets (workspace, name, sealed, created_at_us, created_by, changed_at_us, changed_by)
VALUES (:workspace, :name, :sealed, :now_us, :by, :now_us, :by)
ON CONFLICT (workspace, name) DO UPDATE SET
    sealed = excluded.sealed, changed_at_us = excluded.changed_at_us,
    changed_by = excluded.changed_by
RETURNING workspace, name, created_at_us, created_by, changed_at_us, changed_by;

-- name: other_secrets
-- How many the workspace has besides the one that is being set.
SELECT count(*) FROM secrets WHERE workspace = :workspace AND name <> :name;

-- name: list_secrets
-- Without the values.
SELECT workspace, name, created_at_us, created_by, changed_at_us, changed_by FROM secrets
WHERE workspace = :workspace ORDER BY name;

-- name: sealed_secret
-- One value, by the primary key.
SELECT sealed FROM secrets WHERE workspace = :workspace AND name = :name;

-- name: sealed_secrets
-- All values: a rotation of the keys seals each anew.
SELECT workspace, name, sealed FROM secrets;

-- name: reseal_secret
-- Only while the value is still the one that was opened: somebody may have set another.
UPDATE secrets SET sealed = :sealed
WHERE workspace = :workspace AND name = :name AND sealed = :before;

-- name: remove_secret
-- Jobs that name it fail when they are claimed.
DELETE FROM secrets WHERE workspace = :workspace AND name = :name;
