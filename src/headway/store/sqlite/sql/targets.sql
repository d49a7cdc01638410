-- name: put_target
-- A change replaces the whole row: there is nothing in it that a change should keep.
INSERT OR REPLACE INTO targets (
    name, url, reach, workspaces_json, max_rate_per_s, max_streams, lock_group, health_path, secret,
    changed_at_us, changed_by
) VALUES (
    :name, :url, :reach, :workspaces_json, :max_rate_per_s, :max_streams, :lock_group, :health_path,
    :secret, :now_us, :changed_by
);

-- name: targets
-- The whole registry: an administrator keeps it by hand, so it is small.
SELECT name, url, reach, workspaces_json, max_rate_per_s, max_streams, lock_group, health_path,
    secret, changed_at_us, changed_by FROM targets ORDER BY name;

-- name: target
-- One target, by the primary key.
SELECT name, url, reach, workspaces_json, max_rate_per_s, max_streams, lock_group, health_path,
    secret, changed_at_us, changed_by FROM targets WHERE name = :name;

-- name: remove_target
-- Jobs that wait for it fail when they are claimed.
DELETE FROM targets WHERE name = :name;

-- name: put_overlay
-- Replaced as a whole, as it was validated as a whole.
INSERT OR REPLACE INTO overlays (workspace, env_json, config_json, changed_at_us, changed_by)
VALUES (:workspace, :env_json, :config_json, :now_us, :changed_by);

-- name: overlays
-- All of them: the server keeps them in memory, because every submission asks.
SELECT workspace, env_json, config_json, changed_at_us, changed_by FROM overlays;
