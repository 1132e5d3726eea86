-- name: realm_stamp
SELECT count(*), sum(version), max(id) FROM audience
WHERE ({audiences}) AND key NOT LIKE '["messages",%';

-- name: realm_audiences
SELECT id, key, version, removals FROM audience
WHERE ({audiences}) AND key NOT LIKE '["messages",%' ORDER BY id;

-- name: realm_changed
SELECT seq, memory_type, updated_at, valid_from,
    CASE WHEN superseded_by IS NULL THEN invalid_at ELSE coalesce(invalid_at, created_at) END,
    expires_at, trust, importance, terms, marks, length, vector
FROM memory WHERE {realm} AND audience = :audience AND changed > :changed ORDER BY seq;

-- name: realm_keys
SELECT seq FROM memory WHERE {realm} AND audience = :audience;

-- name: realm_entries
SELECT audience, {memory} FROM memory INDEXED BY memory_name
WHERE memory_id = :id AND {realm} ORDER BY seq;

-- name: hydrate_entries
SELECT seq, {memory} FROM memory NOT INDEXED
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND {realm}
    AND memory_type IN (SELECT value FROM json_each(:kinds)) AND trust >= :trust
    AND (:expired OR expires_at IS NULL OR expires_at > :now)
    AND (:superseded OR ((superseded_by IS NULL OR invalid_at IS NOT NULL)
        AND (valid_from IS NULL OR valid_from <= :now)
        AND (invalid_at IS NULL OR invalid_at > :now)));

-- name: export_entries
SELECT seq, {memory} FROM memory WHERE {realm} AND seq > :after ORDER BY seq LIMIT :limit;

-- name: count_entries
SELECT count(*) FROM memory WHERE {realm};
