-- One row an audience: who may see a set of rows. `version` rises with every change of the
-- set, `removals` with every row taken from it.
CREATE TABLE audience (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice: images are kept by it
    key TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL DEFAULT 0,
    removals INTEGER NOT NULL DEFAULT 0
) STRICT;

-- `digest` identifies the content; `fact_key` is the same where the row alone may hold it.
CREATE TABLE memory (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- never used twice
    audience INTEGER NOT NULL REFERENCES audience (id),
    memory_id TEXT NOT NULL,
    changed INTEGER NOT NULL,
    scope TEXT NOT NULL,
    memory_type TEXT NOT NULL,
    tenant TEXT NOT NULL,
    project TEXT,
    user TEXT,
    principal TEXT,
    session TEXT,
    run TEXT,
    realm_session TEXT,
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
    content_hash TEXT,
    digest TEXT NOT NULL,
    fact_key TEXT,
    trust INTEGER NOT NULL,
    source TEXT,
    terms BLOB NOT NULL,
    marks INTEGER NOT NULL,
    length INTEGER NOT NULL,
    vector BLOB
) STRICT;
CREATE UNIQUE INDEX memory_name ON memory (memory_id, audience);
CREATE INDEX memory_changed ON memory (audience, changed);
CREATE UNIQUE INDEX memory_fact ON memory (audience, fact_key) WHERE fact_key IS NOT NULL;
CREATE INDEX memory_content ON memory (audience, digest);
CREATE INDEX memory_superseded ON memory (audience, superseded_by)
    WHERE superseded_by IS NOT NULL;
CREATE INDEX memory_realm ON memory (tenant, user, realm_session);

-- `born` is the last message's number when the conversation was made: its place in arrival order.
CREATE TABLE conversation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    title TEXT,
    titled_by_hand INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    born INTEGER NOT NULL,
    UNIQUE (tenant, user, session)
) STRICT;

CREATE TABLE message (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversation (id),
    audience INTEGER NOT NULL REFERENCES audience (id),
    message_id TEXT NOT NULL,
    changed INTEGER NOT NULL,
    arrived_at INTEGER NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    token_count INTEGER,
    tool_calls_json TEXT,
    tool_call_id TEXT,
    citations_json TEXT,
    run_id TEXT,
    partial INTEGER NOT NULL,
    name TEXT,
    terms BLOB,
    marks INTEGER,
    length INTEGER,
    vector BLOB,
    UNIQUE (conversation, message_id)
) STRICT;
CREATE INDEX message_changed ON message (audience, changed);
CREATE INDEX message_order ON message (conversation, seq);

CREATE TABLE working (
    owner TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX working_expiry ON working (expires_at);

CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting (name, value) VALUES ('cursor_secret', lower(hex(randomblob(32))));
