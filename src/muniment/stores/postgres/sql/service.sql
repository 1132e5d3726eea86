-- name: acquire_lease
INSERT INTO completion_lease (tenant_id, talk, holder, expires_at)
VALUES (%(tenant)s, %(talk)s, %(holder)s, %(expires_at)s)
ON CONFLICT (tenant_id, talk) DO UPDATE
    SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE completion_lease.expires_at <= %(now)s OR completion_lease.holder = %(holder)s
RETURNING holder;

-- name: lease_ends
SELECT expires_at FROM completion_lease WHERE tenant_id = %(tenant)s AND talk = %(talk)s;

-- name: lease_held
SELECT 1 FROM completion_lease
WHERE tenant_id = %(tenant)s AND talk = %(talk)s AND holder = %(holder)s
FOR SHARE;

-- name: renew_lease
UPDATE completion_lease SET expires_at = %(expires_at)s
WHERE tenant_id = %(tenant)s AND talk = %(talk)s AND holder = %(holder)s
RETURNING holder;

-- name: release_lease
DELETE FROM completion_lease
WHERE tenant_id = %(tenant)s AND talk = %(talk)s AND holder = %(holder)s;

-- name: end_leases
DELETE FROM completion_lease
WHERE tenant_id = %(tenant)s AND talk = ANY(%(talks)s::bytea[]);

-- name: end_requests
DELETE FROM keyed_request WHERE tenant_id = %(tenant)s AND talk = ANY(%(talks)s::bytea[]);

-- name: sweep_requests
DELETE FROM keyed_request WHERE tenant_id = %(tenant)s AND request IN (
    SELECT request FROM keyed_request WHERE tenant_id = %(tenant)s AND expires_at <= %(now)s
    ORDER BY expires_at LIMIT 100 FOR UPDATE SKIP LOCKED);

-- name: begin_request
INSERT INTO keyed_request (tenant_id, request, talk, fingerprint, session_id, question_id,
    expires_at)
VALUES (%(tenant)s, %(request)s, %(talk)s, %(fingerprint)s, %(session)s, %(question)s,
    %(expires_at)s)
ON CONFLICT (tenant_id, request) DO NOTHING;

-- name: keyed_request
SELECT fingerprint, session_id, question_id, answer_id, envelope FROM keyed_request
WHERE tenant_id = %(tenant)s AND request = %(request)s;

-- name: finish_request
UPDATE keyed_request SET answer_id = %(answer)s, envelope = %(envelope)s
WHERE tenant_id = %(tenant)s AND request = %(request)s;

-- name: sizes
SELECT pg_database_size(current_database());

-- name: page_memories
SELECT {m.memory} FROM audience a
JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
WHERE {visible}
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
    AND (%(any_time)s OR ((m.valid_from IS NULL OR m.valid_from <= %(at)s)
        AND (m.invalid_at IS NULL OR m.invalid_at > %(at)s)))
    AND (%(types)s::text[] IS NULL OR m.memory_type = ANY(%(types)s::text[]))
    AND m.trust >= %(trust)s
    AND (%(created)s::bigint IS NULL OR m.created_at < %(created)s::bigint
        OR (m.created_at = %(created)s::bigint AND m.memory_id > %(id)s))
ORDER BY m.created_at DESC, m.memory_id LIMIT %(limit)s;
