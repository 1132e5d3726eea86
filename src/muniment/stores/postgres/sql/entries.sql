-- name: realm_stamp
SELECT count(*), sum(version)::bigint, max(id) FROM audience a WHERE {audiences};

-- name: realm_audiences
SELECT a.id, a.version, a.removals FROM audience a WHERE {audiences} ORDER BY a.id;

-- name: realm_changed
SELECT m.seq, m.memory_type, m.updated_at, m.valid_from,
    CASE WHEN m.superseded_by IS NULL THEN m.invalid_at
        ELSE coalesce(m.invalid_at, m.created_at) END,
    m.expires_at, m.trust, m.importance, m.terms, m.marks, m.length, m.vector
FROM memory m
WHERE {covered} AND m.audience = %(audience)s AND m.changed > %(changed)s;

-- name: realm_keys
SELECT m.seq FROM memory m WHERE {covered} AND m.audience = %(audience)s;

-- name: realm_entries
SELECT m.audience, {m.memory} FROM memory m
WHERE {covered} AND m.memory_id = %(id)s ORDER BY m.seq;

-- name: hydrate_entries
SELECT m.seq, {m.memory} FROM memory m
WHERE {covered} AND m.seq = ANY(%(seqs)s::bigint[])
    AND m.memory_type = ANY(%(kinds)s::text[]) AND m.trust >= %(trust)s
    AND (%(expired)s OR m.expires_at IS NULL OR m.expires_at > %(now)s)
    AND (%(superseded)s OR ((m.superseded_by IS NULL OR m.invalid_at IS NOT NULL)
        AND (m.valid_from IS NULL OR m.valid_from <= %(now)s)
        AND (m.invalid_at IS NULL OR m.invalid_at > %(now)s)));

-- name: export_entries
SELECT m.seq, {m.memory} FROM memory m
WHERE {covered} AND m.seq > %(after)s ORDER BY m.seq LIMIT %(limit)s;

-- name: count_entries
SELECT count(*) FROM memory m WHERE {covered};
