-- name: stage_memory
INSERT INTO staged (import, line, begun, digest, terms, marks, length, tokens,
    old_id, link, audience_key, derived_from, realm_session, memory_id, scope, memory_type,
    tenant, project, user, principal, session, run, agent, metadata, importance, created_at,
    updated_at, expires_at, valid_from, invalid_at, source_session_id, source_message_ids,
    entity_ids, trust, source, content, vector)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: count_staged
SELECT count(*) FROM staged WHERE import = ?1;

-- name: staged_twice
SELECT line FROM staged s WHERE import = ?1 AND old_id IN
    (SELECT old_id FROM staged INDEXED BY staged_name WHERE import = ?1 AND old_id IS NOT NULL
        GROUP BY old_id HAVING count(*) > 1) AND EXISTS
    (SELECT 1 FROM staged e INDEXED BY staged_name WHERE e.import = s.import AND e.old_id = s.old_id
        AND e.audience_key = s.audience_key AND e.line < s.line)
ORDER BY line LIMIT 1;

-- name: find_staged_twins
UPDATE staged SET twin = known.twin
FROM (SELECT s.line, (SELECT m.memory_id FROM memory m JOIN audience a ON a.id = m.audience
        WHERE a.key = s.audience_key AND m.digest = s.digest
            AND m.memory_type = s.memory_type AND m.content = s.content
            AND m.user IS s.user AND m.agent IS s.agent ORDER BY m.seq LIMIT 1) AS twin
    FROM staged s WHERE s.import = ?1) AS known
WHERE staged.import = ?1 AND staged.line = known.line AND known.twin IS NOT NULL;

-- name: link_staged
UPDATE staged SET (superseded_by, invalid_at) = (
    SELECT coalesce(later.twin, later.memory_id), coalesce(staged.invalid_at,
        max(coalesce(later.valid_from, later.created_at),
            coalesce(staged.valid_from + 1, staged.created_at)))
    FROM staged AS later INDEXED BY staged_name
    WHERE later.import = staged.import AND later.old_id = staged.link
        AND later.audience_key = staged.audience_key
    UNION ALL SELECT NULL, staged.invalid_at LIMIT 1)
WHERE import = ?1 AND link IS NOT NULL AND twin IS NULL;

-- name: derive_staged
UPDATE staged SET derived_from = (SELECT json_group_array(name) FROM (
    SELECT (SELECT coalesce(o.twin, o.memory_id) FROM staged o INDEXED BY staged_name
        WHERE o.import = staged.import AND o.old_id = named.value AND (
            ((o.user IS NULL OR o.user IS staged.user)
                AND (o.realm_session IS NULL OR o.realm_session IS staged.realm_session))
            OR ((staged.user IS NULL OR staged.user IS o.user)
                AND (staged.realm_session IS NULL OR staged.realm_session IS o.realm_session)))
        ORDER BY o.audience_key = staged.audience_key DESC, o.line LIMIT 1) AS name
    FROM json_each(staged.derived_from) AS named ORDER BY named.key)
    WHERE name IS NOT NULL)
WHERE import = ?1 AND derived_from <> '[]';

-- name: staged_derivations
SELECT coalesce(sum(json_array_length(derived_from)), 0) FROM staged
WHERE import = ?1 AND derived_from <> '[]' AND twin IS NULL;

-- name: staged_circle
WITH RECURSIVE ends (memory_id) AS (
    SELECT memory_id FROM staged s WHERE import = ?1 AND twin IS NULL AND NOT EXISTS
        (SELECT 1 FROM staged n INDEXED BY staged_name WHERE n.import = ?1 AND n.twin IS NULL
            AND n.audience_key = s.audience_key AND n.old_id = s.link)
    UNION ALL
    SELECT s.memory_id FROM ends
    JOIN staged s INDEXED BY staged_link ON s.import = ?1 AND s.superseded_by = ends.memory_id
)
SELECT line FROM staged WHERE import = ?1 AND superseded_by IS NOT NULL
    AND memory_id NOT IN (SELECT memory_id FROM ends)
ORDER BY line LIMIT 1;

-- name: staged_audiences
INSERT INTO audience (key, version, tenant, user)
SELECT audience_key, 0, json_extract(audience_key, '$[1]'),
    CASE WHEN json_extract(audience_key, '$[0]') IN ('user', 'session', 'run')
    THEN json_extract(audience_key, '$[2]') END
FROM (SELECT DISTINCT audience_key FROM staged WHERE import = ?1) WHERE true
ON CONFLICT DO NOTHING;

-- name: touch_staged_audiences
UPDATE audience SET version = version + 1
WHERE key IN (SELECT audience_key FROM staged WHERE import = ?1);

-- name: count_published
INSERT INTO tenant VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET entries = entries + excluded.entries, tokens = tokens + excluded.tokens;

-- name: publish_staged
INSERT INTO memory (audience, changed, superseded_by,
    digest, tokens, terms, marks, length, vector, realm_session, memory_id, scope,
    memory_type, tenant, project, user, principal, session, run, agent, content, metadata,
    importance, created_at, updated_at, expires_at, valid_from, invalid_at,
    source_session_id, source_message_ids, derived_from, entity_ids, trust, source)
SELECT a.id, a.version, s.superseded_by,
    s.digest, s.tokens, s.terms, s.marks, s.length, s.vector, s.realm_session, s.memory_id,
    s.scope, s.memory_type, s.tenant, s.project, s.user, s.principal, s.session, s.run,
    s.agent, s.content, s.metadata, s.importance, s.created_at, s.updated_at, s.expires_at,
    s.valid_from, s.invalid_at, s.source_session_id, s.source_message_ids, s.derived_from,
    s.entity_ids, s.trust, s.source
FROM staged s JOIN audience a ON a.key = s.audience_key
WHERE s.import = ?1 AND s.twin IS NULL ORDER BY s.line;

-- name: published_derivations
INSERT OR IGNORE INTO derivation (source, derived)
SELECT source.seq, m.seq FROM staged s
JOIN memory m INDEXED BY memory_name ON m.memory_id = s.memory_id
JOIN json_each(s.derived_from) AS named
JOIN memory source INDEXED BY memory_name
    ON source.memory_id = named.value AND source.tenant = s.tenant
WHERE s.import = ?1 AND s.twin IS NULL AND s.derived_from <> '[]';

-- name: published_above_sources
SELECT s.line FROM staged s
JOIN memory m INDEXED BY memory_name ON m.memory_id = s.memory_id
JOIN derivation d ON d.derived = m.seq
JOIN memory source ON source.seq = d.source
WHERE s.import = ?1 AND s.twin IS NULL AND s.derived_from <> '[]'
    AND source.trust < s.trust AND s.trust < ?2
ORDER BY s.line LIMIT 1;

-- name: staged_figures
SELECT coalesce(sum(twin IS NULL), 0), coalesce(sum(tokens) FILTER (WHERE twin IS NULL), 0),
    coalesce(sum(twin IS NOT NULL), 0),
    coalesce(sum(link IS NOT NULL AND twin IS NULL AND superseded_by IS NULL), 0)
FROM staged WHERE import = ?1;

-- name: staged_ids
SELECT line, memory_id FROM staged WHERE import = ?1 AND line > ?2 AND twin IS NULL
ORDER BY line LIMIT ?3;

-- name: drop_staged
DELETE FROM staged WHERE import = ?1;

-- name: others_staged
SELECT EXISTS (SELECT 1 FROM staged WHERE import < ?1)
    OR EXISTS (SELECT 1 FROM staged WHERE import > ?1);

-- name: clear_staged
DELETE FROM staged;

-- name: stale_staged
SELECT 1 FROM staged WHERE begun < ?1 LIMIT 1;

-- name: drop_stale_staged
DELETE FROM staged WHERE begun < ?1;

-- name: erase_staged
DELETE FROM staged WHERE {realm};

-- name: count_sessions
SELECT count(*) FROM conversation WHERE {talks};

-- name: count_messages
SELECT count(*) FROM message WHERE conversation IN (SELECT id FROM conversation WHERE {talks});

-- name: export_sessions
SELECT id, tenant, user, session, kind, title FROM conversation WHERE {talks} ORDER BY id;

-- name: stage_talk
INSERT INTO staged_talk (import, line, begun, tenant, user, session, record, vector)
VALUES (:import, :line, :begun, :tenant, :user, :session, :record, :vector);

-- name: staged_talks
SELECT line, tenant, user, session, record, vector FROM staged_talk
WHERE import = ?1 AND line > ?2 ORDER BY line LIMIT ?3;

-- name: count_staged_talks
SELECT count(*) FROM staged_talk WHERE import = ?1;

-- name: drop_staged_talks
DELETE FROM staged_talk WHERE import = ?1;

-- name: others_staged_talks
SELECT EXISTS (SELECT 1 FROM staged_talk WHERE import < ?1)
    OR EXISTS (SELECT 1 FROM staged_talk WHERE import > ?1);

-- name: clear_staged_talks
DELETE FROM staged_talk;

-- name: stale_staged_talks
SELECT 1 FROM staged_talk WHERE begun < ?1 LIMIT 1;

-- name: drop_stale_staged_talks
DELETE FROM staged_talk WHERE begun < ?1;

-- name: erase_staged_talks
DELETE FROM staged_talk WHERE {talks};
