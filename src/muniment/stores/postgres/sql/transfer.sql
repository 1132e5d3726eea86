-- name: stage_memory
INSERT INTO staged (tenant_id, import, line, begun, old_id, link, audience_key,
    audience_digest, audience_user, digest, tokens, terms, marks, length, vector, realm_session,
    memory_id, scope, memory_type, project_id, user_id, principal_id, session_id, run_id,
    agent_id, content, metadata, importance, created_at, updated_at, expires_at, valid_from,
    invalid_at, source_session_id, source_message_ids, derived_from, entity_ids, trust, source)
VALUES (%(tenant)s, %(import)s, %(line)s, %(begun)s, %(old_id)s, %(link)s, %(audience_key)s,
    %(audience_digest)s, %(audience_user)s, %(digest)s, %(tokens)s, %(terms)s, %(marks)s,
    %(length)s, %(vector)s, %(realm_session)s, %(memory_id)s, %(scope)s, %(memory_type)s,
    %(project)s, %(user)s, %(principal)s, %(session)s, %(run)s, %(agent)s, %(content)s,
    %(metadata)s, %(importance)s, %(created_at)s, %(updated_at)s, %(expires_at)s,
    %(valid_from)s, %(invalid_at)s, %(source_session_id)s, %(source_message_ids)s,
    %(derived_from)s, %(entity_ids)s, %(trust)s, %(source)s);

-- name: count_staged
SELECT count(*) FROM staged WHERE {staged};

-- name: staged_twice
SELECT s.line FROM staged s WHERE {s.staged} AND s.old_id IS NOT NULL AND EXISTS (
    SELECT FROM staged e WHERE e.tenant_id = s.tenant_id AND e.import = s.import
        AND e.old_id = s.old_id AND e.audience_key = s.audience_key AND e.line < s.line)
ORDER BY s.line LIMIT 1;

-- name: find_staged_twins
UPDATE staged s SET twin = (SELECT m.memory_id FROM audience a
    JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
    WHERE a.tenant_id = s.tenant_id AND a.digest = s.audience_digest AND m.digest = s.digest
        AND m.memory_type = s.memory_type AND m.content = s.content
        AND m.user_id IS NOT DISTINCT FROM s.user_id
        AND m.agent_id IS NOT DISTINCT FROM s.agent_id
    ORDER BY m.seq LIMIT 1)
WHERE {s.staged};

-- name: link_staged
UPDATE staged s SET superseded_by = coalesce(later.twin, later.memory_id),
    invalid_at = coalesce(s.invalid_at, greatest(coalesce(later.valid_from, later.created_at),
        coalesce(s.valid_from + 1, s.created_at)))
FROM staged later
WHERE {s.staged} AND s.link IS NOT NULL AND s.twin IS NULL
    AND later.tenant_id = s.tenant_id AND later.import = s.import AND later.old_id = s.link
    AND later.audience_key = s.audience_key;

-- name: derive_staged
UPDATE staged s SET derived_from = coalesce((
    SELECT json_agg(found.name ORDER BY found.place)::text FROM (
        SELECT named.place, (SELECT coalesce(o.twin, o.memory_id) FROM staged o
            WHERE o.tenant_id = s.tenant_id AND o.import = s.import AND o.old_id = named.value
                AND (((o.user_id IS NULL OR o.user_id IS NOT DISTINCT FROM s.user_id)
                    AND (o.realm_session IS NULL
                        OR o.realm_session IS NOT DISTINCT FROM s.realm_session))
                OR ((s.user_id IS NULL OR s.user_id IS NOT DISTINCT FROM o.user_id)
                    AND (s.realm_session IS NULL
                        OR s.realm_session IS NOT DISTINCT FROM o.realm_session)))
            ORDER BY o.audience_key = s.audience_key DESC, o.line LIMIT 1) AS name
        FROM json_array_elements_text(s.derived_from::json)
            WITH ORDINALITY AS named (value, place)) found
    WHERE found.name IS NOT NULL), '[]')
WHERE {s.staged} AND s.derived_from <> '[]';

-- name: staged_derivations
SELECT coalesce(sum(json_array_length(derived_from::json)), 0)::bigint FROM staged
WHERE {staged} AND derived_from <> '[]' AND twin IS NULL;

-- name: staged_circle
WITH RECURSIVE ends (memory_id) AS (
    SELECT s.memory_id FROM staged s WHERE {s.staged} AND s.twin IS NULL AND NOT EXISTS (
        SELECT FROM staged n WHERE n.tenant_id = s.tenant_id AND n.import = s.import
            AND n.twin IS NULL AND n.audience_key = s.audience_key AND n.old_id = s.link)
    UNION ALL
    SELECT s.memory_id FROM ends
    JOIN staged s ON {s.staged} AND s.superseded_by = ends.memory_id
)
SELECT s.line FROM staged s WHERE {s.staged} AND s.superseded_by IS NOT NULL
    AND NOT EXISTS (SELECT FROM ends WHERE ends.memory_id = s.memory_id)
ORDER BY s.line LIMIT 1;

-- name: touch_staged_audiences
INSERT INTO audience (tenant_id, digest, key, messages, shared, user_id, version)
SELECT DISTINCT s.tenant_id, s.audience_digest, s.audience_key, false, false, s.audience_user, 1
FROM staged s WHERE {s.staged} ORDER BY s.audience_digest
ON CONFLICT (tenant_id, digest) DO UPDATE SET version = audience.version + 1;

-- name: publish_staged
INSERT INTO memory (tenant_id, audience, changed, superseded_by, digest, tokens, terms, marks,
    length, vector, realm_session, memory_id, scope, memory_type, project_id, user_id,
    principal_id, session_id, run_id, agent_id, content, metadata, importance, created_at,
    updated_at, expires_at, valid_from, invalid_at, source_session_id, source_message_ids,
    derived_from, entity_ids, trust, source)
SELECT s.tenant_id, a.id, a.version, s.superseded_by, s.digest, s.tokens, s.terms, s.marks,
    s.length, s.vector, s.realm_session, s.memory_id, s.scope, s.memory_type, s.project_id,
    s.user_id, s.principal_id, s.session_id, s.run_id, s.agent_id, s.content, s.metadata,
    s.importance, s.created_at, s.updated_at, s.expires_at, s.valid_from, s.invalid_at,
    s.source_session_id, s.source_message_ids, s.derived_from, s.entity_ids, s.trust, s.source
FROM staged s JOIN audience a ON a.tenant_id = s.tenant_id AND a.digest = s.audience_digest
WHERE {s.staged} AND s.twin IS NULL ORDER BY s.line;

-- name: published_derivations
INSERT INTO derivation (tenant_id, source, derived)
SELECT DISTINCT m.tenant_id, source.seq, m.seq FROM staged s
JOIN memory m ON m.tenant_id = s.tenant_id AND m.memory_id = s.memory_id
CROSS JOIN LATERAL json_array_elements_text(s.derived_from::json) AS named (value)
JOIN memory source ON source.tenant_id = s.tenant_id AND source.memory_id = named.value
WHERE {s.staged} AND s.twin IS NULL AND s.derived_from <> '[]'
ON CONFLICT DO NOTHING;

-- name: published_above_sources
SELECT s.line FROM staged s
JOIN memory m ON m.tenant_id = s.tenant_id AND m.memory_id = s.memory_id
JOIN derivation d ON d.tenant_id = m.tenant_id AND d.derived = m.seq
JOIN memory source ON source.tenant_id = d.tenant_id AND source.seq = d.source
WHERE {s.staged} AND s.twin IS NULL AND s.derived_from <> '[]'
    AND source.trust < s.trust AND s.trust < %(owner)s
ORDER BY s.line LIMIT 1;

-- name: staged_figures
SELECT count(*) FILTER (WHERE twin IS NULL), count(*) FILTER (WHERE twin IS NOT NULL),
    count(*) FILTER (WHERE link IS NOT NULL AND twin IS NULL AND superseded_by IS NULL)
FROM staged WHERE {staged};

-- name: staged_ids
SELECT line, memory_id FROM staged WHERE {staged} AND line > %(line)s AND twin IS NULL
ORDER BY line LIMIT %(limit)s;

-- name: drop_staged
DELETE FROM staged WHERE {staged};

-- name: drop_stale_staged
DELETE FROM staged WHERE tenant_id = %(tenant)s AND begun < %(begun)s;

-- name: erase_staged
DELETE FROM staged m WHERE {covered};

-- name: count_sessions
SELECT count(*) FROM conversation c WHERE {talks};

-- name: count_messages
SELECT count(*) FROM conversation c JOIN message m
    ON m.tenant_id = c.tenant_id AND m.audience = c.audience AND m.conversation = c.id
WHERE {talks};

-- name: export_sessions
SELECT c.audience, c.id, c.user_id, c.session_id, c.kind, c.title FROM conversation c
WHERE {talks} ORDER BY c.audience, c.id;

-- name: export_messages
SELECT m.seq, {m.message} FROM message m
WHERE m.tenant_id = %(tenant)s AND m.audience = %(audience)s
    AND m.conversation = %(conversation)s AND m.seq > %(after)s
ORDER BY m.seq LIMIT %(limit)s;

-- name: stage_talk
INSERT INTO staged_talk (tenant_id, import, line, begun, user_id, session_id, record, vector)
VALUES (%(tenant)s, %(import)s, %(line)s, %(begun)s, %(user)s, %(session)s, %(record)s,
    %(vector)s);

-- name: staged_talks
SELECT line, user_id, session_id, record, vector FROM staged_talk
WHERE {staged} AND line > %(line)s ORDER BY line LIMIT %(limit)s;

-- name: count_staged_talks
SELECT count(*) FROM staged_talk WHERE {staged};

-- name: drop_staged_talks
DELETE FROM staged_talk WHERE {staged};

-- name: drop_stale_staged_talks
DELETE FROM staged_talk WHERE tenant_id = %(tenant)s AND begun < %(begun)s;

-- name: erase_staged_talks
DELETE FROM staged_talk c WHERE {talks};
