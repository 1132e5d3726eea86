-- name: acquire_lease
INSERT INTO completion_lease (tenant, user, session, holder, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (tenant, user, session) DO UPDATE
    SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE completion_lease.expires_at <= ?6 OR completion_lease.holder = ?4
RETURNING holder;

-- name: lease_ends
SELECT expires_at FROM completion_lease WHERE tenant = ?1 AND user = ?2 AND session = ?3;

-- name: lease_held
SELECT 1 FROM completion_lease
WHERE tenant = ?1 AND user = ?2 AND session = ?3 AND holder = ?4;

-- name: renew_lease
UPDATE completion_lease SET expires_at = ?5
WHERE tenant = ?1 AND user = ?2 AND session = ?3 AND holder = ?4
RETURNING holder;

-- name: release_lease
DELETE FROM completion_lease
WHERE tenant = ?1 AND user = ?2 AND session = ?3 AND holder = ?4;

-- name: sweep_requests
DELETE FROM keyed_request WHERE (tenant, user, key) IN
    (SELECT tenant, user, key FROM keyed_request WHERE expires_at <= ?1
        ORDER BY expires_at LIMIT 100);

-- name: begin_request
INSERT INTO keyed_request (tenant, user, key, fingerprint, session, question_id, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (tenant, user, key) DO NOTHING;

-- name: keyed_request
SELECT fingerprint, session, question_id, answer_id, envelope FROM keyed_request
WHERE tenant = ?1 AND user = ?2 AND key = ?3;

-- name: finish_request
UPDATE keyed_request SET answer_id = ?4, envelope = ?5
WHERE tenant = ?1 AND user = ?2 AND key = ?3;

-- name: sizes
SELECT c.page_count * s.page_size, f.freelist_count * s.page_size
FROM pragma_page_count c, pragma_page_size s, pragma_freelist_count f;

-- name: page_memories
SELECT {memory} FROM memory
WHERE audience IN (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(:keys)))
    AND (expires_at IS NULL OR expires_at > :now)
    AND (:any_time OR ((valid_from IS NULL OR valid_from <= :at)
        AND (invalid_at IS NULL OR invalid_at > :at)))
    AND (:types IS NULL OR memory_type IN (SELECT value FROM json_each(:types)))
    AND trust >= :trust
    AND (:after IS NULL OR created_at < :after OR (created_at = :after AND memory_id > :after_id))
ORDER BY created_at DESC, memory_id LIMIT :limit;
