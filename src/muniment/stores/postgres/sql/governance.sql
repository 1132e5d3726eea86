-- name: sweep_memories
DELETE FROM memory m WHERE {covered} AND m.expires_at <= %(now)s
RETURNING m.audience, m.memory_id;

-- name: usage_covered
SELECT count(*), coalesce(sum(m.tokens), 0)::bigint FROM memory m WHERE {covered};

-- name: tenant_totals
SELECT coalesce(sum(entries), 0)::bigint, coalesce(sum(tokens), 0)::bigint
FROM audience WHERE tenant_id = %(tenant)s;

-- name: lock_quota
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, 0));

-- name: served
SELECT searches, entries, tokens FROM served
WHERE tenant_id = %(tenant)s AND day = %(day)s;

-- name: add_served
INSERT INTO served (tenant_id, day, searches, entries, tokens)
VALUES (%(tenant)s, %(day)s, %(searches)s, %(entries)s, %(tokens)s)
ON CONFLICT (tenant_id, day) DO UPDATE SET searches = served.searches + excluded.searches,
    entries = served.entries + excluded.entries, tokens = served.tokens + excluded.tokens;

-- name: forget_served
DELETE FROM served WHERE tenant_id = %(tenant)s;

-- name: visible_sources
SELECT CASE WHEN m.tenant_id = %(tenant)s THEN m.seq END, m.memory_id, m.trust, m.scope
FROM audience a JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
WHERE {visible} AND m.memory_id = ANY(%(ids)s::text[])
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s);

-- name: covered_sources
SELECT m.seq, m.memory_id, m.trust, m.scope FROM memory m
WHERE {covered} AND m.memory_id = ANY(%(ids)s::text[]);

-- name: held_derivation
SELECT seq, derived_from FROM memory
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND memory_id = %(memory_id)s;

-- name: link_sources
INSERT INTO derivation (tenant_id, source, derived)
SELECT %(tenant)s, source, %(derived)s FROM unnest(%(sources)s::bigint[]) AS given (source)
ON CONFLICT DO NOTHING;

-- name: unlink_sources
DELETE FROM derivation d USING memory m
WHERE d.tenant_id = %(tenant)s AND d.derived = %(derived)s
    AND m.tenant_id = d.tenant_id AND m.seq = d.source
    AND m.memory_id <> ALL(%(ids)s::text[]);

-- name: heard_in_realm
SELECT m.seq, m.memory_type FROM memory m
WHERE {heard} AND m.source_message_ids <> '[]';

-- name: forget_source_session
UPDATE memory m SET source_session_id = NULL, source_message_ids = '[]' WHERE {heard};

-- name: derived_outside
SELECT d.derived FROM memory m
JOIN derivation d ON d.tenant_id = m.tenant_id AND d.source = m.seq
JOIN memory other ON other.tenant_id = d.tenant_id AND other.seq = d.derived
WHERE {covered} AND NOT (
    (%(subject)s::text IS NULL OR other.user_id IS NOT DISTINCT FROM %(subject)s::text)
    AND (%(agent)s::text IS NULL OR other.agent_id IS NOT DISTINCT FROM %(agent)s::text)
    AND (%(session)s::text IS NULL
        OR other.realm_session IS NOT DISTINCT FROM %(session)s::text));

-- name: links_from
WITH RECURSIVE reached (seq) AS (
    SELECT seq FROM unnest(%(seqs)s::bigint[]) AS given (seq)
    UNION
    SELECT beside.seq FROM reached r CROSS JOIN LATERAL (
        SELECT d.derived FROM derivation d
        WHERE d.tenant_id = %(tenant)s AND d.source = r.seq OFFSET 0
    ) link CROSS JOIN LATERAL (
        SELECT m.seq FROM memory m
        WHERE m.tenant_id = %(tenant)s AND m.seq = link.derived AND ({covered}) IS NOT TRUE
        OFFSET 0 -- looked up by its key for each link: no table is read once a level
    ) beside
)
SELECT seq FROM reached;

-- name: links_to
SELECT derived, source FROM derivation
WHERE tenant_id = %(tenant)s AND derived = ANY(%(seqs)s::bigint[]);

-- name: covered_among
SELECT m.seq FROM memory m WHERE {covered} AND m.seq = ANY(%(seqs)s::bigint[]);

-- name: still_said
SELECT m.seq FROM memory m
WHERE m.tenant_id = %(tenant)s AND m.seq = ANY(%(seqs)s::bigint[]) AND EXISTS (
    SELECT FROM conversation c JOIN message g ON g.tenant_id = c.tenant_id
        AND g.audience = c.audience AND g.conversation = c.id
    WHERE c.tenant_id = m.tenant_id AND c.session_id = m.source_session_id
        AND c.user_id = m.user_id AND g.message_id IN
        (SELECT json_array_elements_text(m.source_message_ids::json)));

-- name: lost_links
SELECT d.derived, m.memory_id FROM derivation d
JOIN memory m ON m.tenant_id = d.tenant_id AND m.seq = d.source
WHERE d.tenant_id = %(tenant)s AND d.derived = ANY(%(left)s::bigint[])
    AND (m.seq = ANY(%(fallen)s::bigint[]) OR ({covered}));

-- name: derived_from
SELECT seq, derived_from FROM memory
WHERE tenant_id = %(tenant)s AND seq = ANY(%(seqs)s::bigint[]);

-- name: set_derived_from
UPDATE memory m SET derived_from = left_over.ids
FROM unnest(%(seqs)s::bigint[], %(ids)s::text[]) AS left_over (seq, ids)
WHERE m.tenant_id = %(tenant)s AND m.seq = left_over.seq;

-- name: places
SELECT audience, memory_id FROM memory
WHERE tenant_id = %(tenant)s AND seq = ANY(%(seqs)s::bigint[]) ORDER BY seq;
