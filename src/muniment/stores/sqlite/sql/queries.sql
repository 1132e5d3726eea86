-- name: audiences
SELECT id, key, version, removals FROM audience
WHERE key IN (SELECT value FROM json_each(?1));

-- name: touch_audience
UPDATE audience SET version = version + 1 WHERE key = ?1 RETURNING id, version;

-- name: new_audience
INSERT INTO audience (key, version, tenant, user) VALUES (?1, 1, json_extract(?1, '$[1]'),
    CASE WHEN json_extract(?1, '$[0]') IN ('user', 'session', 'run', 'messages')
    THEN json_extract(?1, '$[2]') END)
RETURNING id, version;

-- name: count_removals
UPDATE audience SET version = version + 1, removals = removals + 1
WHERE id IN (SELECT value FROM json_each(?1))
RETURNING version;

-- name: memory_changed
SELECT seq, memory_type, updated_at, valid_from, invalid_at, expires_at, trust, importance,
    terms, marks, length, vector
FROM memory WHERE audience = ?1 AND changed > ?2 ORDER BY seq;

-- name: memory_keys
SELECT seq FROM memory WHERE audience = ?1;

-- name: message_changed
SELECT m.seq, c.session, m.role, m.created_at, m.terms, m.marks, m.length, m.vector
FROM message m JOIN conversation c ON c.id = m.conversation
WHERE m.audience = ?1 AND m.changed > ?2 AND m.terms IS NOT NULL ORDER BY m.seq;

-- name: message_keys
SELECT seq FROM message WHERE audience = ?1;

-- name: insert_memory
INSERT INTO memory (audience, changed, vector, {row}, digest, terms, marks, length, tokens)
VALUES (?1, ?2, ?3, {row from 4}, ?31, ?32, ?33, ?34, ?35);

-- name: save_memory
INSERT INTO memory (audience, changed, digest, fact_key, terms, marks, length, vector,
    realm_session, memory_id, scope, memory_type, tenant, project, user, principal, session, run,
    agent, content, metadata, importance, created_at, updated_at, expires_at, valid_from,
    invalid_at, superseded_by, source_session_id, source_message_ids, derived_from, entity_ids,
    content_hash, trust, source, tokens)
VALUES (:audience, :changed, :digest, :fact_key, :terms, :marks, :length, :vector,
    :realm_session, :memory_id, :scope, :memory_type, :tenant, :project, :user, :principal,
    :session, :run, :agent, :content, :metadata, :importance, :created_at, :updated_at,
    :expires_at, :valid_from, :invalid_at, :superseded_by, :source_session_id,
    :source_message_ids, :derived_from, :entity_ids, :content_hash, :trust, :source, :tokens)
ON CONFLICT (audience, memory_id) DO UPDATE SET
    changed = excluded.changed, digest = excluded.digest, terms = excluded.terms, marks = excluded.marks,
    length = excluded.length, vector = coalesce(excluded.vector,
        CASE WHEN memory.content = excluded.content THEN memory.vector END), realm_session = excluded.realm_session,
    fact_key = CASE WHEN excluded.fact_key IS NOT NULL THEN excluded.fact_key
        WHEN memory.digest = excluded.digest
        AND excluded.superseded_by IS NULL AND excluded.invalid_at IS NULL
        THEN memory.fact_key END,
    memory_type = excluded.memory_type, project = excluded.project, user = excluded.user,
    principal = excluded.principal, session = excluded.session, run = excluded.run,
    agent = excluded.agent, content = excluded.content, metadata = excluded.metadata,
    importance = excluded.importance, created_at = excluded.created_at,
    updated_at = excluded.updated_at, expires_at = excluded.expires_at,
    valid_from = excluded.valid_from, invalid_at = excluded.invalid_at,
    superseded_by = excluded.superseded_by, source_session_id = excluded.source_session_id,
    source_message_ids = excluded.source_message_ids, derived_from = excluded.derived_from,
    entity_ids = excluded.entity_ids, content_hash = excluded.content_hash,
    trust = excluded.trust, source = excluded.source, tokens = excluded.tokens;

-- name: get_memory
SELECT {memory} FROM memory
WHERE memory_id = ?1 AND audience IN
    (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(?2)))
    AND (expires_at IS NULL OR expires_at > ?3);

-- name: list_memories
SELECT {memory} FROM memory
WHERE audience IN (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(:keys)))
    AND (expires_at IS NULL OR expires_at > :now)
    AND (:any_time OR ((valid_from IS NULL OR valid_from <= :at)
        AND (invalid_at IS NULL OR invalid_at > :at)))
    AND (:types IS NULL OR memory_type IN (SELECT value FROM json_each(:types)))
    AND trust >= :trust
ORDER BY updated_at DESC, memory_id LIMIT :limit;

-- name: hydrate_memories
SELECT seq, {memory} FROM memory NOT INDEXED
WHERE seq IN (SELECT value FROM json_each(:seqs))
    AND audience IN (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(:keys)))
    AND (expires_at IS NULL OR expires_at > :now)
    AND (:any_time OR ((valid_from IS NULL OR valid_from <= :at)
        AND (invalid_at IS NULL OR invalid_at > :at)))
    AND trust >= :trust;

-- name: hydrate_messages
SELECT m.seq, c.session, m.message_id, m.role, m.content, m.created_at, m.name
FROM message m JOIN conversation c ON c.id = m.conversation
WHERE m.seq IN (SELECT value FROM json_each(:seqs))
    AND m.audience IN (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(:keys)))
    AND (:session IS NULL OR c.session = :session)
    AND (:said_until IS NULL OR m.created_at <= :said_until);

-- name: message_seqs
SELECT m.seq FROM message m JOIN conversation c ON c.id = m.conversation
WHERE c.tenant = ?1 AND c.user = ?2 AND (?3 IS NULL OR c.session = ?3)
    AND m.message_id IN (SELECT value FROM json_each(?4));

-- name: memory_place
SELECT audience, expires_at IS NOT NULL AND expires_at <= ?3 FROM memory
WHERE memory_id = ?1 AND audience IN
    (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(?2)));

-- name: open_conversation
INSERT INTO conversation (tenant, user, session, kind, title, titled_by_hand, created_at, born)
VALUES (:tenant, :user, :session, :kind, :title, :by_hand, :now,
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0))
ON CONFLICT (tenant, user, session) DO NOTHING;

-- name: conversation
SELECT id, kind, title FROM conversation WHERE tenant = ?1 AND user = ?2 AND session = ?3;

-- name: held_messages
SELECT {message} FROM message
WHERE conversation = ?1 AND message_id IN (SELECT value FROM json_each(?2));

-- name: append_message
INSERT INTO message (conversation, audience, changed, arrived_at, terms, marks, length, vector,
    message_id, role, content, created_at, token_count, tool_calls_json, tool_call_id,
    citations_json, run_id, partial, name)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19);

-- name: recent_messages
SELECT {message} FROM message WHERE conversation = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3;

-- name: messages_from
SELECT {message} FROM message WHERE conversation = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3;

-- name: message_seq
SELECT seq FROM message WHERE conversation = ?1 AND message_id = ?2;

-- name: clear_messages
DELETE FROM message WHERE conversation = ?1 RETURNING audience;

-- name: delete_summary
DELETE FROM memory WHERE audience = (SELECT id FROM audience WHERE key = ?1)
    AND memory_type = 'summary' RETURNING audience, {memory};

-- name: list_conversations
SELECT session, kind, title, created_at,
    coalesce((SELECT arrived_at FROM message WHERE seq = last), created_at),
    (SELECT count(*) FROM message WHERE conversation = id AND seq <= :messages),
    coalesce(last, born), id
FROM (
    SELECT c.*, (SELECT max(m.seq) FROM message m
        WHERE m.conversation = c.id AND m.seq <= :messages) AS last
    FROM conversation c
    WHERE c.tenant = :tenant AND c.user = :user AND c.id <= :conversations
        AND (:kind IS NULL OR c.kind = :kind)
)
WHERE (coalesce(last, born), id) < (:activity, :id)
ORDER BY 7 DESC, 8 DESC LIMIT :limit;

-- name: arrivals
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'message'), 0),
    coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'conversation'), 0);

-- name: rename
UPDATE conversation SET title = ?4, titled_by_hand = 1
WHERE tenant = ?1 AND user = ?2 AND session = ?3 RETURNING id;

-- name: set_generated_title
UPDATE conversation SET title = ?4
WHERE tenant = ?1 AND user = ?2 AND session = ?3 AND titled_by_hand = 0
RETURNING id;

-- name: get_working
SELECT state FROM working WHERE owner = ?1 AND expires_at > ?2;

-- name: put_working
INSERT INTO working (owner, tenant, user, session, state, expires_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (owner) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at;

-- name: delete_working
DELETE FROM working WHERE owner = ?1;

-- name: sweep_working
DELETE FROM working WHERE owner IN
    (SELECT owner FROM working WHERE expires_at <= ?1 ORDER BY expires_at LIMIT 100);

-- name: visible_by_memory_id
SELECT audience, {memory} FROM memory
WHERE memory_id = ?1 AND audience IN
    (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(?2)))
    AND (expires_at IS NULL OR expires_at > ?3);

-- name: visible_by_superseded_by
SELECT audience, {memory} FROM memory
WHERE superseded_by = ?1 AND audience IN
    (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(?2)))
    AND (expires_at IS NULL OR expires_at > ?3);

-- name: covered_by_memory_id
SELECT audience, {memory} FROM memory INDEXED BY memory_name
WHERE memory_id = :value AND tenant = :tenant AND (:subject IS NULL OR user = :subject)
    AND (:agent IS NULL OR agent = :agent) AND (:session IS NULL OR realm_session = :session);

-- name: covered_by_superseded_by
SELECT audience, {memory} FROM memory
WHERE superseded_by = :value AND tenant = :tenant AND (:subject IS NULL OR user = :subject)
    AND (:agent IS NULL OR agent = :agent) AND (:session IS NULL OR realm_session = :session);

-- name: count_covered
SELECT count(*) FROM memory
WHERE {realm};

-- name: replacements_in_realm
SELECT gone.audience, gone.memory_id
FROM (SELECT audience, memory_id FROM memory WHERE {realm}) gone
JOIN memory kept ON kept.audience = gone.audience AND kept.superseded_by = gone.memory_id
WHERE NOT ((:subject IS NULL OR kept.user IS :subject)
    AND (:agent IS NULL OR kept.agent IS :agent)
    AND (:session IS NULL OR kept.realm_session IS :session));

-- name: erase_memories
DELETE FROM memory
WHERE {realm}
RETURNING audience, memory_id;

-- name: sweep_memories
DELETE FROM memory
WHERE {realm}
    AND expires_at <= :now
RETURNING audience, memory_id;

-- name: usage_covered
SELECT count(*), coalesce(sum(tokens), 0) FROM memory
WHERE {realm};

-- name: tenant_totals
SELECT entries, tokens FROM tenant WHERE tenant = ?1;

-- name: served
SELECT searches, entries, tokens FROM served WHERE tenant = ?1 AND day = ?2;

-- name: add_served
INSERT INTO served (tenant, day, searches, entries, tokens) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET searches = searches + excluded.searches,
    entries = entries + excluded.entries, tokens = tokens + excluded.tokens;

-- name: forget_served
DELETE FROM served WHERE tenant = ?1;

-- name: visible_sources
SELECT seq, memory_id, trust, scope FROM memory
WHERE memory_id IN (SELECT value FROM json_each(?1)) AND audience IN
    (SELECT id FROM audience WHERE key IN (SELECT value FROM json_each(?2)))
    AND (expires_at IS NULL OR expires_at > ?3);

-- name: covered_sources
SELECT seq, memory_id, trust, scope FROM memory
WHERE memory_id IN (SELECT value FROM json_each(:ids))
    AND {realm};

-- name: held_derivation
SELECT seq, derived_from FROM memory WHERE audience = ?1 AND memory_id = ?2;

-- name: link_sources
INSERT OR IGNORE INTO derivation (source, derived) SELECT value, ?1 FROM json_each(?2);

-- name: unlink_sources
DELETE FROM derivation WHERE derived = ?1 AND source IN (
    SELECT d.source FROM derivation d JOIN memory m ON m.seq = d.source
    WHERE d.derived = ?1 AND m.memory_id NOT IN (SELECT value FROM json_each(?2)));

-- name: heard_in_realm
SELECT seq, memory_type FROM memory
WHERE {realm} AND source_session_id = :source AND source_message_ids <> '[]'
    AND realm_session IS NOT :source;

-- name: forget_source_session
UPDATE memory SET source_session_id = NULL, source_message_ids = '[]'
WHERE {realm} AND source_session_id = :source AND realm_session IS NOT :source;

-- name: derived_outside
SELECT d.derived FROM (SELECT seq FROM memory WHERE {realm}) gone
JOIN derivation d ON d.source = gone.seq JOIN memory other ON other.seq = d.derived
WHERE NOT ((:subject IS NULL OR other.user IS :subject)
    AND (:agent IS NULL OR other.agent IS :agent)
    AND (:session IS NULL OR other.realm_session IS :session));

-- name: links_from
SELECT derived FROM derivation WHERE source IN (SELECT value FROM json_each(?1));

-- name: links_to
SELECT derived, source FROM derivation WHERE derived IN (SELECT value FROM json_each(?1));

-- name: covered_among
SELECT seq FROM memory NOT INDEXED
WHERE seq IN (SELECT value FROM json_each(:seqs))
    AND tenant = :tenant AND (:subject IS NULL OR user = :subject)
    AND (:agent IS NULL OR agent = :agent) AND (:session IS NULL OR realm_session = :session);

-- name: still_said
SELECT m.seq FROM memory m
WHERE m.seq IN (SELECT value FROM json_each(?1)) AND EXISTS (
    SELECT 1 FROM conversation c JOIN message g ON g.conversation = c.id
    WHERE c.tenant = m.tenant AND c.user = m.user AND c.session = m.source_session_id
        AND g.message_id IN (SELECT value FROM json_each(m.source_message_ids)));

-- name: lost_links
SELECT d.derived, m.memory_id FROM derivation d JOIN memory m ON m.seq = d.source
WHERE d.derived IN (SELECT value FROM json_each(:left))
    AND (m.seq IN (SELECT value FROM json_each(:fallen)) OR (m.tenant = :tenant AND (:subject IS NULL OR m.user = :subject)
    AND (:agent IS NULL OR m.agent = :agent)
    AND (:session IS NULL OR m.realm_session = :session)));

-- name: derived_from
SELECT derived_from FROM memory WHERE seq = ?1;

-- name: set_derived_from
UPDATE memory SET derived_from = ?2 WHERE seq = ?1;

-- name: places
SELECT audience, memory_id FROM memory WHERE seq IN (SELECT value FROM json_each(?1));

-- name: erase_messages
DELETE FROM message WHERE conversation IN (SELECT id FROM conversation
    WHERE tenant = :tenant AND (:subject IS NULL OR user = :subject)
        AND (:session IS NULL OR session = :session))
RETURNING audience, message_id;

-- name: erase_conversations
DELETE FROM conversation WHERE tenant = :tenant AND (:subject IS NULL OR user = :subject)
    AND (:session IS NULL OR session = :session)
RETURNING session;

-- name: erase_working
DELETE FROM working WHERE tenant = :tenant AND (:subject IS NULL OR user = :subject)
    AND (:session IS NULL OR session = :session)
RETURNING owner;

-- name: forget_audiences
DELETE FROM audience WHERE id IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM memory WHERE memory.audience = audience.id)
    AND NOT EXISTS (SELECT 1 FROM message WHERE message.audience = audience.id);

-- name: forget_model
DELETE FROM setting WHERE name IN ('embedding_model', 'embedding_width');

-- name: forget_memory_vectors
UPDATE memory SET vector = NULL WHERE vector IS NOT NULL;

-- name: forget_message_vectors
UPDATE message SET vector = NULL WHERE vector IS NOT NULL;

-- name: memory_texts
SELECT seq, audience, changed, content, NULL FROM memory
WHERE seq > :after AND (:tenant IS NULL OR tenant = :tenant)
    AND (:subject IS NULL OR user = :subject) AND (:agent IS NULL OR agent = :agent)
    AND (:session IS NULL OR realm_session = :session)
ORDER BY seq LIMIT :limit;

-- name: message_texts
SELECT seq, audience, changed, content, name FROM message
WHERE seq > :after AND terms IS NOT NULL AND (:tenant IS NULL OR conversation IN
    (SELECT id FROM conversation
    WHERE tenant = :tenant AND :agent IS NULL AND (:subject IS NULL OR user = :subject)
        AND (:session IS NULL OR session = :session)))
ORDER BY seq LIMIT :limit;

-- name: reindex_memory
UPDATE memory SET terms = ?3, marks = ?4, length = ?5, changed = ?7,
    vector = coalesce(?6, CASE WHEN ?8 THEN vector END)
WHERE seq = ?1 AND changed = ?2;

-- name: reindex_message
UPDATE message SET terms = ?3, marks = ?4, length = ?5, changed = ?7,
    vector = coalesce(?6, CASE WHEN ?8 THEN vector END)
WHERE seq = ?1 AND changed = ?2;

-- name: touch_audience_id
UPDATE audience SET version = version + 1 WHERE id = ?1 RETURNING version;

-- name: setting
SELECT value FROM setting WHERE name = ?1;

-- name: forget_setting
DELETE FROM setting WHERE name = ?1;

-- name: record_setting
INSERT INTO setting (name, value) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: clear_setting
DELETE FROM setting WHERE name = ?1 AND value = ?2;

-- name: memory_of_audience
SELECT {memory} FROM memory WHERE audience = ?1 AND memory_id = ?2;

-- name: predecessor
SELECT {memory} FROM memory WHERE audience = ?1 AND superseded_by = ?2
ORDER BY invalid_at DESC, seq DESC LIMIT 1;

-- name: same_content
SELECT {memory} FROM memory WHERE audience = ?1 AND digest = ?2 ORDER BY seq;

-- name: release_fact
UPDATE memory SET fact_key = NULL WHERE audience = ?1 AND fact_key = ?2;

-- name: place_memory
UPDATE memory SET valid_from = :valid_from, invalid_at = :invalid_at,
    superseded_by = :superseded_by, updated_at = :updated_at, fact_key = :fact_key,
    changed = :changed
WHERE audience = :audience AND memory_id = :memory_id;

-- name: delete_memory
DELETE FROM memory WHERE audience = ?1 AND memory_id = ?2 RETURNING fact_key, {memory};

-- name: set_vector
UPDATE memory SET vector = ?3, changed = ?4 WHERE audience = ?1 AND memory_id = ?2;
