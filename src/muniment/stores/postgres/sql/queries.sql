-- name: audiences
SELECT s.width, a.id, a.key, a.version, a.removals, a.tenant_id
FROM (SELECT (SELECT value FROM setting
    WHERE tenant_id = '' AND name = 'embedding_width')::integer AS width) s
LEFT JOIN audience a ON {visible};

-- name: touch_audience
INSERT INTO audience (tenant_id, digest, key, messages, shared, user_id, version)
VALUES (%(tenant)s, %(digest)s, %(key)s, %(messages)s, %(shared)s, %(user)s, %(step)s)
ON CONFLICT (tenant_id, digest) DO UPDATE SET version = audience.version + %(step)s
RETURNING id, version;

-- name: count_removals
UPDATE audience SET version = version + 1, removals = removals + 1
WHERE tenant_id = %(tenant)s AND id = ANY(%(audiences)s::bigint[])
RETURNING id, version;

-- name: memory_changed
SELECT seq, memory_type, updated_at, valid_from, invalid_at, expires_at, trust, importance,
    terms, marks, length, vector, changed
FROM memory WHERE tenant_id = %(place)s AND audience = %(audience)s
    AND (changed, seq) > (%(version)s, %(seq)s)
ORDER BY changed, seq LIMIT %(limit)s;

-- name: memory_keys
SELECT seq FROM memory WHERE tenant_id = %(place)s AND audience = %(audience)s;

-- name: message_changed
SELECT m.seq, c.session_id, m.role, m.created_at, m.terms, m.marks, m.length,
    m.vector, m.changed
FROM message m JOIN conversation c
    ON c.tenant_id = m.tenant_id AND c.audience = m.audience AND c.id = m.conversation
WHERE m.tenant_id = %(place)s AND m.audience = %(audience)s
    AND (m.changed, m.seq) > (%(version)s, %(seq)s) AND m.terms IS NOT NULL
ORDER BY m.changed, m.seq LIMIT %(limit)s;

-- name: message_keys
SELECT seq FROM message WHERE tenant_id = %(place)s AND audience = %(audience)s;

-- name: save_memory
WITH held AS (
    SELECT user_id, agent_id, realm_session FROM memory
    WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND memory_id = %(memory_id)s
)
INSERT INTO memory (tenant_id, audience, changed, digest, fact_key, terms, marks, length,
    tokens, vector, realm_session, memory_id, scope, memory_type, project_id, user_id, principal_id,
    session_id, run_id, agent_id, content, metadata, importance, created_at, updated_at,
    expires_at, valid_from, invalid_at, superseded_by, source_session_id, source_message_ids,
    derived_from, entity_ids, content_hash, trust, source)
VALUES (%(tenant)s, %(audience)s, %(changed)s, %(digest)s, %(fact_key)s, %(terms)s,
    %(marks)s, %(length)s, %(tokens)s, %(vector)s, %(realm_session)s, %(memory_id)s, %(scope)s,
    %(memory_type)s, %(project)s, %(user)s, %(principal)s, %(session)s, %(run)s, %(agent)s,
    %(content)s, %(metadata)s, %(importance)s, %(created_at)s, %(updated_at)s, %(expires_at)s,
    %(valid_from)s, %(invalid_at)s, %(superseded_by)s, %(source_session_id)s,
    %(source_message_ids)s, %(derived_from)s, %(entity_ids)s, %(content_hash)s, %(trust)s,
    %(source)s)
ON CONFLICT (tenant_id, audience, memory_id) DO UPDATE SET
    changed = excluded.changed, digest = excluded.digest, terms = excluded.terms,
    marks = excluded.marks, length = excluded.length, tokens = excluded.tokens,
    vector = coalesce(excluded.vector,
        CASE WHEN memory.content = excluded.content THEN memory.vector END),
    realm_session = excluded.realm_session,
    fact_key = CASE WHEN excluded.fact_key IS NOT NULL THEN excluded.fact_key
        WHEN memory.digest = excluded.digest
        AND excluded.superseded_by IS NULL AND excluded.invalid_at IS NULL
        THEN memory.fact_key END,
    memory_type = excluded.memory_type, project_id = excluded.project_id,
    user_id = excluded.user_id, principal_id = excluded.principal_id,
    session_id = excluded.session_id, run_id = excluded.run_id, agent_id = excluded.agent_id,
    content = excluded.content, metadata = excluded.metadata, importance = excluded.importance,
    created_at = excluded.created_at, updated_at = excluded.updated_at,
    expires_at = excluded.expires_at, valid_from = excluded.valid_from,
    invalid_at = excluded.invalid_at, superseded_by = excluded.superseded_by,
    source_session_id = excluded.source_session_id,
    source_message_ids = excluded.source_message_ids, derived_from = excluded.derived_from,
    entity_ids = excluded.entity_ids, content_hash = excluded.content_hash,
    trust = excluded.trust, source = excluded.source
RETURNING EXISTS (SELECT FROM held WHERE (held.user_id, held.agent_id, held.realm_session)
    IS DISTINCT FROM (memory.user_id, memory.agent_id, memory.realm_session));

-- name: get_memory
SELECT {m.memory} FROM audience a
JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
WHERE {visible} AND m.memory_id = %(memory_id)s
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s);

-- name: list_memories
SELECT {m.memory} FROM audience a
JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
WHERE {visible}
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
    AND (%(any_time)s OR ((m.valid_from IS NULL OR m.valid_from <= %(at)s)
        AND (m.invalid_at IS NULL OR m.invalid_at > %(at)s)))
    AND (%(types)s::text[] IS NULL OR m.memory_type = ANY(%(types)s::text[]))
    AND m.trust >= %(trust)s
ORDER BY m.updated_at DESC, m.memory_id LIMIT %(limit)s;

-- name: hydrate_memories
SELECT m.audience, m.seq, {m.memory}
FROM unnest(%(which)s::integer[], %(seqs)s::bigint[]) AS found (place, seq)
JOIN memory m ON m.tenant_id = (%(places)s::text[])[found.place] AND m.seq = found.seq
WHERE (m.tenant_id = %(tenant)s OR m.scope = 'global')
    AND m.audience = ANY(%(audiences)s::bigint[])
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
    AND (%(any_time)s OR ((m.valid_from IS NULL OR m.valid_from <= %(at)s)
        AND (m.invalid_at IS NULL OR m.invalid_at > %(at)s)))
    AND m.trust >= %(trust)s;

-- name: hydrate_messages
SELECT m.seq, c.session_id, m.message_id, m.role, m.content, m.created_at, m.name
FROM message m JOIN conversation c
    ON c.tenant_id = m.tenant_id AND c.audience = m.audience AND c.id = m.conversation
WHERE m.tenant_id = %(tenant)s AND m.audience = %(audience)s
    AND m.seq = ANY(%(seqs)s::bigint[])
    AND (%(session)s::text IS NULL OR c.session_id = %(session)s::text)
    AND (%(said_until)s::bigint IS NULL OR m.created_at <= %(said_until)s::bigint);

-- name: message_seqs
SELECT m.seq FROM audience a
JOIN conversation c ON c.tenant_id = a.tenant_id AND c.audience = a.id
JOIN message m
    ON m.tenant_id = c.tenant_id AND m.audience = c.audience AND m.conversation = c.id
WHERE a.tenant_id = %(tenant)s AND a.digest = %(digest)s
    AND (%(session)s::text IS NULL OR c.session_id = %(session)s::text)
    AND m.message_id = ANY(%(ids)s::text[]);

-- name: memory_place
SELECT a.id, a.key, m.expires_at IS NOT NULL AND m.expires_at <= %(now)s
FROM audience a JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
WHERE {own} AND m.memory_id = %(memory_id)s;

-- name: open_conversation
INSERT INTO conversation (tenant_id, audience, id, user_id, session_id, kind, title,
    titled_by_hand, created_at)
VALUES (%(tenant)s, %(audience)s, %(id)s, %(user)s, %(session)s, %(kind)s, %(title)s,
    %(by_hand)s, %(now)s)
ON CONFLICT (tenant_id, audience, session_id) DO NOTHING;

-- name: conversation
SELECT c.audience, c.id, c.kind, c.title FROM audience a
JOIN conversation c ON c.tenant_id = a.tenant_id AND c.audience = a.id
WHERE a.tenant_id = %(tenant)s AND a.digest = %(digest)s AND c.session_id = %(session)s;

-- name: held_messages
SELECT {message} FROM message WHERE tenant_id = %(tenant)s AND audience = %(audience)s
    AND conversation = %(conversation)s AND message_id = ANY(%(ids)s::text[]);

-- name: append_message
INSERT INTO message (tenant_id, audience, seq, changed, conversation, arrived_at, terms, marks,
    length, vector, message_id, role, content, created_at, token_count, tool_calls_json,
    tool_call_id, citations_json, run_id, partial, name)
VALUES (%(tenant)s, %(audience)s, %(seq)s, %(changed)s, %(conversation)s, %(now)s, %(terms)s,
    %(marks)s, %(length)s, %(vector)s, %(message_id)s, %(role)s, %(content)s, %(created_at)s,
    %(token_count)s, %(tool_calls_json)s, %(tool_call_id)s, %(citations_json)s, %(run_id)s,
    %(partial)s, %(name)s);

-- name: recent_messages
SELECT {message} FROM message WHERE tenant_id = %(tenant)s AND audience = %(audience)s
    AND conversation = %(conversation)s AND seq < %(before)s
ORDER BY seq DESC LIMIT %(limit)s;

-- name: messages_from
SELECT {message} FROM message WHERE tenant_id = %(tenant)s AND audience = %(audience)s
    AND conversation = %(conversation)s AND seq > %(after)s
ORDER BY seq LIMIT %(limit)s;

-- name: message_seq
SELECT seq FROM message WHERE tenant_id = %(tenant)s AND audience = %(audience)s
    AND conversation = %(conversation)s AND message_id = %(message_id)s;

-- name: clear_messages
DELETE FROM message WHERE tenant_id = %(tenant)s AND audience = %(audience)s
    AND conversation = %(conversation)s
RETURNING audience;

-- name: delete_summary
DELETE FROM memory WHERE tenant_id = %(tenant)s AND memory_type = 'summary' AND audience =
    (SELECT id FROM audience WHERE tenant_id = %(tenant)s AND digest = %(digest)s)
RETURNING audience, {memory};

-- name: list_conversations
SELECT c.session_id, c.kind, c.title, c.created_at, coalesce(last.arrived_at, c.created_at),
    (SELECT count(*) FROM message m WHERE m.tenant_id = c.tenant_id
        AND m.audience = c.audience AND m.conversation = c.id AND m.seq <= %(snapshot)s),
    coalesce(last.seq, c.id)
FROM audience a
JOIN conversation c ON c.tenant_id = a.tenant_id AND c.audience = a.id
LEFT JOIN LATERAL (
    SELECT m.seq, m.arrived_at FROM message m
    WHERE m.tenant_id = c.tenant_id AND m.audience = c.audience AND m.conversation = c.id
        AND m.seq <= %(snapshot)s
    ORDER BY m.seq DESC LIMIT 1
) last ON true
WHERE a.tenant_id = %(tenant)s AND a.digest = %(digest)s AND c.id <= %(snapshot)s
    AND (%(kind)s::text IS NULL OR c.kind = %(kind)s::text)
    AND coalesce(last.seq, c.id) < %(activity)s
ORDER BY 7 DESC LIMIT %(limit)s;

-- name: arrivals
SELECT version FROM audience WHERE tenant_id = %(tenant)s AND digest = %(digest)s;

-- name: rename
UPDATE conversation SET title = %(title)s, titled_by_hand = true
WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND audience =
    (SELECT id FROM audience WHERE tenant_id = %(tenant)s AND digest = %(digest)s)
RETURNING id;

-- name: set_generated_title
UPDATE conversation SET title = %(title)s
WHERE tenant_id = %(tenant)s AND session_id = %(session)s AND audience =
    (SELECT id FROM audience WHERE tenant_id = %(tenant)s AND digest = %(digest)s)
    AND NOT titled_by_hand
RETURNING id;

-- name: get_working
SELECT state FROM working
WHERE tenant_id = %(tenant)s AND owner = %(owner)s AND expires_at > %(now)s;

-- name: put_working
INSERT INTO working (tenant_id, owner, user_id, session_id, state, expires_at)
VALUES (%(tenant)s, %(owner)s, %(user)s, %(session)s, %(state)s, %(expires_at)s)
ON CONFLICT (tenant_id, owner)
DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at;

-- name: delete_working
DELETE FROM working WHERE tenant_id = %(tenant)s AND owner = %(owner)s;

-- name: sweep_working
DELETE FROM working WHERE tenant_id = %(tenant)s AND owner IN (
    SELECT owner FROM working WHERE tenant_id = %(tenant)s AND expires_at <= %(now)s
    ORDER BY expires_at LIMIT 100 FOR UPDATE SKIP LOCKED);

-- name: visible_by_memory_id
SELECT m.audience, {m.memory} FROM audience a
JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
WHERE {visible} AND m.memory_id = %(value)s
    AND (m.expires_at IS NULL OR m.expires_at > %(now)s);

-- name: visible_chain
WITH RECURSIVE found (tenant_id, seq, memory_id, superseded_by) AS (
    SELECT m.tenant_id, m.seq, m.memory_id, m.superseded_by FROM audience a
    JOIN memory m ON m.tenant_id = a.tenant_id AND m.audience = a.id
    WHERE {visible} AND a.id = %(audience)s AND m.memory_id = %(value)s
        AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
    UNION
    SELECT beside.tenant_id, beside.seq, beside.memory_id, beside.superseded_by
    FROM found f CROSS JOIN LATERAL (
        SELECT m.tenant_id, m.seq, m.memory_id, m.superseded_by FROM memory m
        WHERE m.tenant_id = f.tenant_id AND m.audience = %(audience)s
            AND m.superseded_by = f.memory_id
            AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
        UNION ALL
        SELECT m.tenant_id, m.seq, m.memory_id, m.superseded_by FROM memory m
        WHERE m.tenant_id = f.tenant_id AND m.audience = %(audience)s
            AND m.memory_id = f.superseded_by
            AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
    ) beside
)
SELECT {m.memory} FROM found f JOIN memory m ON m.tenant_id = f.tenant_id AND m.seq = f.seq;

-- name: covered_by_memory_id
SELECT m.audience, {m.memory} FROM memory m WHERE {covered} AND m.memory_id = %(value)s;

-- name: covered_chain
WITH RECURSIVE found (seq, memory_id, superseded_by) AS (
    SELECT m.seq, m.memory_id, m.superseded_by FROM memory m
    WHERE {covered} AND m.audience = %(audience)s AND m.memory_id = %(value)s
    UNION
    SELECT beside.seq, beside.memory_id, beside.superseded_by
    FROM found f CROSS JOIN LATERAL (
        SELECT m.seq, m.memory_id, m.superseded_by FROM memory m
        WHERE {covered} AND m.audience = %(audience)s AND m.superseded_by = f.memory_id
        UNION ALL
        SELECT m.seq, m.memory_id, m.superseded_by FROM memory m
        WHERE {covered} AND m.audience = %(audience)s AND m.memory_id = f.superseded_by
    ) beside
)
SELECT {m.memory} FROM found f JOIN memory m ON m.tenant_id = %(tenant)s AND m.seq = f.seq;

-- name: count_covered
SELECT count(*) FROM memory m WHERE {covered};

-- name: replacements_in_realm
WITH RECURSIVE replacement (audience, memory_id, superseded_by, kept) AS (
    SELECT m.audience, m.memory_id, m.superseded_by, kept.memory_id FROM memory m
    JOIN memory kept ON kept.tenant_id = m.tenant_id AND kept.audience = m.audience
        AND kept.superseded_by = m.memory_id
    WHERE {covered} AND NOT (
        (%(subject)s::text IS NULL OR kept.user_id IS NOT DISTINCT FROM %(subject)s::text)
        AND (%(agent)s::text IS NULL OR kept.agent_id IS NOT DISTINCT FROM %(agent)s::text)
        AND (%(session)s::text IS NULL
            OR kept.realm_session IS NOT DISTINCT FROM %(session)s::text))
    UNION
    SELECT r.audience, following.memory_id, following.superseded_by, NULL
    FROM replacement r CROSS JOIN LATERAL (
        SELECT m.memory_id, m.superseded_by FROM memory m
        WHERE {covered} AND m.audience = r.audience AND m.memory_id = r.superseded_by
        OFFSET 0 -- looked up by its key: no table is read once a level
    ) following
)
SELECT audience, memory_id, kept FROM replacement;

-- name: erase_memories
DELETE FROM memory m WHERE {covered} RETURNING m.audience, m.memory_id;

-- name: erase_messages
DELETE FROM message m USING conversation c
WHERE m.tenant_id = c.tenant_id AND m.audience = c.audience AND m.conversation = c.id
    AND {talks}
RETURNING m.audience, m.message_id;

-- name: erase_conversations
DELETE FROM conversation c WHERE {talks} RETURNING c.audience, c.user_id, c.session_id;

-- name: erase_working
DELETE FROM working WHERE tenant_id = %(tenant)s
    AND (%(subject)s::text IS NULL OR user_id = %(subject)s::text)
    AND (%(session)s::text IS NULL OR session_id = %(session)s::text)
RETURNING owner;

-- name: lock_audiences
SELECT id FROM audience WHERE tenant_id = %(tenant)s AND id IN (
    SELECT m.audience FROM memory m WHERE {covered}
    UNION SELECT c.audience FROM conversation c WHERE {talks})
ORDER BY id FOR UPDATE;

-- name: lock_places
SELECT id FROM audience WHERE tenant_id = %(tenant)s AND id = ANY(%(audiences)s::bigint[])
ORDER BY id FOR UPDATE;

-- name: forget_audiences
DELETE FROM audience a WHERE a.tenant_id = %(tenant)s AND a.id = ANY(%(audiences)s::bigint[])
    AND NOT EXISTS (SELECT FROM memory m
        WHERE m.tenant_id = a.tenant_id AND m.audience = a.id)
    AND NOT EXISTS (SELECT FROM message m
        WHERE m.tenant_id = a.tenant_id AND m.audience = a.id)
    AND NOT EXISTS (SELECT FROM conversation c
        WHERE c.tenant_id = a.tenant_id AND c.audience = a.id);

-- name: forget_model
DELETE FROM setting
WHERE tenant_id = '' AND name IN ('embedding_model', 'embedding_width');

-- name: setting
SELECT value FROM setting WHERE tenant_id = '' AND name = %(name)s;

-- name: record_setting
INSERT INTO setting (tenant_id, name, value) VALUES ('', %(name)s, %(value)s)
ON CONFLICT (tenant_id, name) DO NOTHING;

-- name: memory_of_audience
SELECT {memory} FROM memory
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND memory_id = %(memory_id)s;

-- name: predecessor
SELECT {memory} FROM memory
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND superseded_by = %(memory_id)s
ORDER BY invalid_at DESC NULLS LAST, seq DESC LIMIT 1;

-- name: same_content
SELECT {memory} FROM memory
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND digest = %(digest)s ORDER BY seq;

-- name: release_fact
UPDATE memory SET fact_key = NULL
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND fact_key = %(fact_key)s;

-- name: place_memory
UPDATE memory SET valid_from = %(valid_from)s, invalid_at = %(invalid_at)s,
    superseded_by = %(superseded_by)s, updated_at = %(updated_at)s, fact_key = %(fact_key)s,
    changed = %(changed)s
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND memory_id = %(memory_id)s;

-- name: delete_memories
DELETE FROM memory m USING unnest(%(audiences)s::bigint[], %(names)s::text[])
    AS gone (audience, memory_id)
WHERE m.tenant_id = %(tenant)s AND m.audience = gone.audience AND m.memory_id = gone.memory_id
RETURNING m.audience, m.seq, m.fact_key IS NOT NULL, {m.memory};

-- name: predecessors
SELECT m.audience, m.seq, m.fact_key IS NOT NULL, {m.memory}
FROM unnest(%(audiences)s::bigint[], %(names)s::text[]) AS gone (audience, memory_id)
JOIN memory m ON m.tenant_id = %(tenant)s AND m.audience = gone.audience
    AND m.superseded_by = gone.memory_id;

-- name: same_contents
SELECT m.audience, m.seq, m.fact_key IS NOT NULL, {m.memory}
FROM unnest(%(audiences)s::bigint[], %(names)s::text[]) AS held (audience, digest)
JOIN memory m ON m.tenant_id = %(tenant)s AND m.audience = held.audience
    AND m.digest = held.digest;

-- name: reopen_memories
UPDATE memory m SET invalid_at = again.invalid_at, superseded_by = again.superseded_by,
    fact_key = again.fact_key, changed = again.changed
FROM unnest(%(audiences)s::bigint[], %(names)s::text[], %(invalid_at)s::bigint[],
    %(superseded_by)s::text[], %(fact_keys)s::text[], %(changed)s::bigint[])
    AS again (audience, memory_id, invalid_at, superseded_by, fact_key, changed)
WHERE m.tenant_id = %(tenant)s AND m.audience = again.audience
    AND m.memory_id = again.memory_id;

-- name: set_vector
UPDATE memory SET vector = %(vector)s, changed = %(changed)s
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND memory_id = %(memory_id)s;

-- name: forget_memory_vectors
UPDATE memory SET vector = NULL WHERE tenant_id = %(tenant)s AND vector IS NOT NULL;

-- name: forget_message_vectors
UPDATE message SET vector = NULL WHERE tenant_id = %(tenant)s AND vector IS NOT NULL;

-- name: memory_texts
SELECT m.audience, m.seq, m.changed, m.content, NULL FROM memory m
WHERE {covered} AND (m.audience, m.seq) > (%(audience)s, %(after)s)
ORDER BY m.audience, m.seq LIMIT %(limit)s;

-- name: message_texts
SELECT m.audience, m.seq, m.changed, m.content, m.name FROM conversation c
JOIN message m ON m.tenant_id = c.tenant_id AND m.audience = c.audience AND m.conversation = c.id
WHERE {talks} AND %(agent)s::text IS NULL AND m.terms IS NOT NULL
    AND (m.audience, m.seq) > (%(audience)s, %(after)s)
ORDER BY m.audience, m.seq LIMIT %(limit)s;

-- name: reindex_memory
UPDATE memory SET terms = %(terms)s, marks = %(marks)s, length = %(length)s,
    changed = %(version)s,
    vector = coalesce(%(vector)s::halfvec, CASE WHEN %(keep)s THEN vector END)
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND seq = %(seq)s
    AND changed = %(changed)s;

-- name: reindex_message
UPDATE message SET terms = %(terms)s, marks = %(marks)s, length = %(length)s,
    changed = %(version)s,
    vector = coalesce(%(vector)s::halfvec, CASE WHEN %(keep)s THEN vector END)
WHERE tenant_id = %(tenant)s AND audience = %(audience)s AND seq = %(seq)s
    AND changed = %(changed)s;

-- name: touch_audience_id
UPDATE audience SET version = version + 1
WHERE tenant_id = %(tenant)s AND id = %(audience)s RETURNING version;

-- name: next_tenant
SELECT next_tenant(%(after)s);
