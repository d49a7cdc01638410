-- name: accounts_exist
-- Whether there ever was a user.
SELECT 1 FROM closed LIMIT 1;

-- name: close_server
-- Noted with the first user; stays for ever.
INSERT INTO closed (since_us) SELECT :now_us WHERE NOT EXISTS (SELECT 1 FROM closed LIMIT 1);

-- name: insert_user
-- The primary key decides whose the name is. A removed user's is only its own when it comes back.
INSERT INTO users (name, administrator, created_at_us, created_by)
VALUES (:name, :administrator, :now_us, :by)
ON CONFLICT (name) DO UPDATE SET administrator = excluded.administrator, removed_at_us = NULL
WHERE users.removed_at_us IS NOT NULL AND :returning;

-- name: removed_user
-- By primary key.
SELECT removed_at_us FROM users WHERE name = :name AND removed_at_us IS NOT NULL;

-- name: user
-- By primary key; a removed one is not there.
SELECT name, administrator, created_at_us, created_by FROM users
WHERE name = :name AND removed_at_us IS NULL;

-- name: users
-- All of them, by name.
SELECT name, administrator, created_at_us, created_by FROM users
WHERE removed_at_us IS NULL ORDER BY name;

-- name: other_administrators
-- Whether somebody could still manage the server without this one.
SELECT 1 FROM users WHERE administrator = 1 AND name <> :name LIMIT 1;

-- name: set_administrator
-- By primary key.
UPDATE users SET administrator = :administrator WHERE name = :name;

-- name: remove_user
-- The row stays, so that the name does; memberships and tokens are dealt with beside it.
UPDATE users SET administrator = 0, removed_at_us = :now_us WHERE name = :name;

-- name: remove_members_of_user
-- Along the index by user.
DELETE FROM members WHERE user = :user;

-- name: revoke_tokens_of_user
-- Personal tokens and sessions; service tokens are the workspace's, whoever made them.
UPDATE tokens SET revoked_at_us = :now_us, revoked_by = :by
WHERE user = :user AND user IS NOT NULL AND revoked_at_us IS NULL;

-- name: insert_workspace
-- Fails also for the name of a deleted one, under which jobs may still be kept.
INSERT INTO workspaces (name, created_at_us, created_by) VALUES (:name, :now_us, :by)
ON CONFLICT (name) DO NOTHING;

-- name: workspace
-- By primary key; a deleted one is not there.
SELECT name, created_at_us, created_by FROM workspaces
WHERE name = :name AND deleted_at_us IS NULL;

-- name: workspaces
-- All of them, by name.
SELECT name, created_at_us, created_by FROM workspaces WHERE deleted_at_us IS NULL ORDER BY name;

-- name: delete_workspace
-- The row stays, so that the name does.
UPDATE workspaces SET deleted_at_us = :now_us WHERE name = :name AND deleted_at_us IS NULL;

-- name: remove_members_of_workspace
-- A range of the primary key.
DELETE FROM members WHERE workspace = :workspace;

-- name: revoke_tokens_of_workspace
-- Those that are good only there.
UPDATE tokens SET revoked_at_us = :now_us, revoked_by = :by
WHERE workspace = :workspace AND workspace IS NOT NULL AND revoked_at_us IS NULL;

-- name: members
-- A range of the primary key.
SELECT workspace, user, role FROM members WHERE workspace = :workspace ORDER BY user;

-- name: member
-- By primary key.
SELECT workspace, user, role FROM members WHERE workspace = :workspace AND user = :user;

-- name: set_member
-- A new member, or another role for one.
INSERT INTO members (workspace, user, role) VALUES (:workspace, :user, :role)
ON CONFLICT (workspace, user) DO UPDATE SET role = excluded.role;

-- name: remove_member
-- By primary key.
DELETE FROM members WHERE workspace = :workspace AND user = :user;

-- name: roles_of_user
-- Along the index by user; deleting a workspace removes its members.
SELECT workspace, role FROM members WHERE user = :user;

-- name: insert_token
-- Ids are drawn by chance, 60 bits; the primary key would tell if one came twice.
INSERT INTO tokens (
    id, secret_hash, kind, label, user, workspace, role, parent, created_at_us, created_by,
    expires_at_us
) VALUES (
    :id, :secret_hash, :kind, :label, :user, :workspace, :role, :parent, :now_us, :by,
    :expires_at_us
);

-- name: token
-- By primary key.
SELECT {token}, secret_hash FROM tokens WHERE id = :id;

-- name: tokens
-- All of them, for administrators; revoked ones are removed after a while.
SELECT {token} FROM tokens ORDER BY created_at_us;

-- name: tokens_of_user
-- Along the index by user.
SELECT {token} FROM tokens WHERE user = :user AND user IS NOT NULL ORDER BY created_at_us;

-- name: tokens_of_workspace
-- Along the index by workspace.
SELECT {token} FROM tokens
WHERE workspace = :workspace AND workspace IS NOT NULL ORDER BY created_at_us;

-- name: revoke_token
-- The first revocation counts.
UPDATE tokens SET revoked_at_us = :now_us, revoked_by = :by
WHERE id = :id AND revoked_at_us IS NULL;

-- name: revoke_children
-- Sessions and links that began with the token.
UPDATE tokens SET revoked_at_us = :now_us, revoked_by = :by
WHERE parent = :id AND parent IS NOT NULL AND revoked_at_us IS NULL;

-- name: note_use
-- Written once a minute at most, never for each request.
UPDATE tokens SET last_used_at_us = max(coalesce(last_used_at_us, 0), :at_us) WHERE id = :id;

-- name: remove_dead_tokens
-- Long revoked or expired. A service token's name goes with it, so its waiting jobs would fail.
DELETE FROM tokens WHERE id IN (
    SELECT id FROM tokens WHERE revoked_at_us < :before_us OR expires_at_us < :before_us
    LIMIT :limit
);

-- name: live_service_roles
-- The roles of a workspace's service tokens of one name; several while one replaces another.
SELECT role FROM tokens
WHERE workspace = :workspace AND workspace IS NOT NULL AND kind = 'service' AND label = :label
      AND revoked_at_us IS NULL AND (expires_at_us IS NULL OR expires_at_us > :now_us);

-- name: insert_audit
-- Numbers ascend and are never given out twice.
INSERT INTO audit (
    at_us, user, via, token_id, address, workspace, action, subject, detail_json, count
) VALUES (
    :at_us, :user, :via, :token_id, :address, :workspace, :action, :subject, :detail_json, :count
);

-- name: audit_log
-- A page, newest first.
SELECT {audit} FROM audit WHERE number < :before ORDER BY number DESC LIMIT :limit;

-- name: audit_log_by_action
-- The same of one action.
SELECT {audit} FROM audit WHERE action = :action AND number < :before
ORDER BY number DESC LIMIT :limit;

-- name: audit_log_by_workspace
-- The same of one workspace.
SELECT {audit} FROM audit
WHERE workspace = :workspace AND workspace IS NOT NULL AND number < :before
      AND (:action IS NULL OR action = :action)
ORDER BY number DESC LIMIT :limit;

-- name: trim_audit_by_age
-- Along the index by time.
DELETE FROM audit WHERE number IN (
    SELECT number FROM audit WHERE at_us < :before_us ORDER BY at_us LIMIT :limit
);

-- name: newest_denied
-- The number of the last denial that is kept, counting from the newest.
SELECT number FROM audit WHERE action = 'denied' ORDER BY number DESC LIMIT 1 OFFSET :kept;

-- name: trim_denied
-- Denials cost the caller nothing: so many of them must not push administrative acts out.
DELETE FROM audit WHERE number IN (
    SELECT number FROM audit WHERE action = 'denied' AND number <= :last
    ORDER BY number LIMIT :limit
);
