-- What a text costs in a prompt, by the store's estimator; one token for 3 bytes until then.
ALTER TABLE memory ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
UPDATE memory SET tokens = (octet_length(content) + 2) / 3;

-- Where a memory came from, by session: what an erased session's facts are found by.
CREATE INDEX memory_source ON memory (tenant, user, source_session_id)
    WHERE source_session_id IS NOT NULL;

-- One row a tenant with memories: what quotas are held against, kept by the triggers below.
CREATE TABLE tenant (
    tenant TEXT PRIMARY KEY,
    entries INTEGER NOT NULL,
    tokens INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO tenant SELECT tenant, count(*), sum(tokens) FROM memory GROUP BY tenant;

CREATE TRIGGER memory_counted AFTER INSERT ON memory BEGIN
    INSERT INTO tenant VALUES (new.tenant, 1, new.tokens)
    ON CONFLICT DO UPDATE SET entries = entries + 1, tokens = tokens + excluded.tokens;
END;

CREATE TRIGGER memory_recounted AFTER UPDATE OF tokens ON memory
WHEN new.tokens <> old.tokens BEGIN
    UPDATE tenant SET tokens = tokens + new.tokens - old.tokens WHERE tenant = new.tenant;
END;

CREATE TRIGGER memory_uncounted AFTER DELETE ON memory BEGIN
    UPDATE tenant SET entries = entries - 1, tokens = tokens - old.tokens
    WHERE tenant = old.tenant;
    DELETE FROM tenant WHERE tenant = old.tenant AND entries = 0;
END;

-- What searches served, by UTC day (YYYY-MM-DD).
CREATE TABLE served (
    tenant TEXT NOT NULL,
    day TEXT NOT NULL,
    searches INTEGER NOT NULL,
    entries INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (tenant, day)
) STRICT, WITHOUT ROWID;

-- `derived_from`, resolved: which row was derived from which.
CREATE TABLE derivation (
    source INTEGER NOT NULL REFERENCES memory (seq) ON DELETE CASCADE,
    derived INTEGER NOT NULL REFERENCES memory (seq) ON DELETE CASCADE,
    PRIMARY KEY (source, derived)
) STRICT, WITHOUT ROWID;
CREATE INDEX derivation_derived ON derivation (derived);

-- Audit records that are durable with their change and not yet in the log.
CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    at TEXT NOT NULL,
    event TEXT NOT NULL,
    realm TEXT,
    data TEXT NOT NULL
) STRICT;

-- Whose an audience is: none of tenant and user for GLOBAL, no user for TENANT and PROJECT.
ALTER TABLE audience ADD COLUMN tenant TEXT;
ALTER TABLE audience ADD COLUMN user TEXT;
UPDATE audience SET tenant = json_extract(key, '$[1]'),
    user = CASE WHEN json_extract(key, '$[0]') IN ('user', 'session', 'run', 'messages')
    THEN json_extract(key, '$[2]') END;
CREATE INDEX audience_realm ON audience (tenant, user);

-- What of a realm has changed, without a look at anybody else's rows.
DROP INDEX memory_realm;
CREATE INDEX memory_realm ON memory (tenant, user, audience, changed);

-- A row that another user, agent or session takes over has left a realm.
CREATE TRIGGER memory_moved AFTER UPDATE OF user, agent, realm_session ON memory
WHEN old.user IS NOT new.user OR old.agent IS NOT new.agent
    OR old.realm_session IS NOT new.realm_session BEGIN
    UPDATE audience SET removals = removals + 1 WHERE id = new.audience;
END;

-- What an import has read so far: nobody's until it is published in one transaction.
CREATE TABLE staged (
    import INTEGER NOT NULL,
    line INTEGER NOT NULL,
    begun INTEGER NOT NULL,
    old_id TEXT,
    link TEXT,
    twin TEXT,
    audience_key TEXT NOT NULL,
    digest TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    terms BLOB NOT NULL,
    marks INTEGER NOT NULL,
    length INTEGER NOT NULL,
    vector BLOB,
    realm_session TEXT,
    memory_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    memory_type TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT,
    user TEXT,
    principal TEXT,
    session TEXT,
    run TEXT,
    agent TEXT,
    content TEXT NOT NULL,
    metadata TEXT NOT NULL,
    importance REAL NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    valid_from INTEGER,
    invalid_at INTEGER,
    superseded_by TEXT,
    source_session_id TEXT,
    source_message_ids TEXT NOT NULL,
    derived_from TEXT NOT NULL,
    entity_ids TEXT NOT NULL,
    trust INTEGER NOT NULL,
    source TEXT,
    PRIMARY KEY (import, line)
) STRICT, WITHOUT ROWID;
CREATE TABLE staged_talk (
    import INTEGER NOT NULL,
    line INTEGER NOT NULL,
    begun INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    record TEXT NOT NULL,
    vector BLOB,
    PRIMARY KEY (import, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX staged_name ON staged (import, old_id);
CREATE INDEX staged_link ON staged (import, superseded_by) WHERE superseded_by IS NOT NULL;

-- The links of what was derived before: to the rows of that id that its user may see.
INSERT OR IGNORE INTO derivation (source, derived)
SELECT source.seq, derived.seq
FROM memory derived, json_each(derived.derived_from) AS name
JOIN memory source ON source.memory_id = name.value
WHERE derived.derived_from <> '[]' AND source.tenant = derived.tenant
    AND source.seq <> derived.seq
    AND (source.user IS derived.user OR source.scope = 'tenant'
        OR (source.scope = 'project' AND source.project IS derived.project));
