-- Everything lives in the schema `muniment`. `tenant_id` leads every key, so that each table can
-- be partitioned or distributed by it; times are microseconds since 1970; text is compared byte
-- by byte. A partitioned installation says PARTITION BY
-- after a table.
CREATE SEQUENCE audience_id;
CREATE SEQUENCE memory_seq;

-- One row an audience: who may see a set of rows. `version` rises with every change of the set,
-- `removals` with every row taken from it; whoever changes the set locks this row first.
-- `user_id` is whose the set is, if a user's; `shared` is GLOBAL's. `entries` and `tokens` count
-- its memories.
CREATE TABLE audience (
    tenant_id text COLLATE "C" NOT NULL,
    id bigint NOT NULL DEFAULT nextval('audience_id'), -- never used twice: images are kept by it
    digest bytea NOT NULL, -- of the key, which may be longer than an index takes
    key text COLLATE "C" NOT NULL,
    messages boolean NOT NULL, -- of messages, not of memories
    shared boolean NOT NULL,
    user_id text COLLATE "C",
    version bigint NOT NULL,
    removals bigint NOT NULL DEFAULT 0,
    entries bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, id),
    UNIQUE (tenant_id, digest)
) {partitioned};
CREATE INDEX audience_shared ON audience (tenant_id, id) WHERE shared;

-- `digest` identifies the content; `fact_key` is the same where the row alone may hold it.
-- `tokens` is what the text costs in a prompt, by the store's estimator.
CREATE TABLE memory (
    tenant_id text COLLATE "C" NOT NULL,
    audience bigint NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('memory_seq'), -- never used twice: the order of arrival
    changed bigint NOT NULL, -- the audience's version when the row last changed
    memory_id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    memory_type text COLLATE "C" NOT NULL,
    project_id text COLLATE "C",
    user_id text COLLATE "C",
    principal_id text COLLATE "C",
    session_id text COLLATE "C",
    run_id text COLLATE "C",
    realm_session text COLLATE "C",
    agent_id text COLLATE "C",
    content text NOT NULL,
    metadata text NOT NULL,
    importance double precision NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint,
    valid_from bigint,
    invalid_at bigint,
    superseded_by text COLLATE "C",
    source_session_id text COLLATE "C",
    source_message_ids text NOT NULL,
    derived_from text NOT NULL,
    entity_ids text NOT NULL,
    content_hash text COLLATE "C",
    digest text COLLATE "C" NOT NULL,
    fact_key text COLLATE "C",
    trust smallint NOT NULL,
    source text COLLATE "C",
    terms bytea NOT NULL,
    marks bigint NOT NULL,
    length integer NOT NULL,
    tokens integer NOT NULL,
    vector halfvec,
    PRIMARY KEY (tenant_id, seq),
    UNIQUE (tenant_id, audience, memory_id)
) {partitioned};
CREATE INDEX memory_changed ON memory (tenant_id, audience, changed);
CREATE UNIQUE INDEX memory_fact ON memory (tenant_id, audience, fact_key)
    WHERE fact_key IS NOT NULL;
CREATE INDEX memory_content ON memory (tenant_id, audience, digest);
CREATE INDEX memory_superseded ON memory (tenant_id, audience, superseded_by)
    WHERE superseded_by IS NOT NULL;
CREATE INDEX memory_realm ON memory (tenant_id, user_id, seq);
CREATE INDEX memory_named ON memory (tenant_id, memory_id);

-- `audience` is the user's, whose version also numbers the conversations: `id` is its place in
-- the order of that user's arrivals.
CREATE TABLE conversation (
    tenant_id text COLLATE "C" NOT NULL,
    audience bigint NOT NULL,
    id bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    title text,
    titled_by_hand boolean NOT NULL DEFAULT false,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, audience, id),
    UNIQUE (tenant_id, audience, session_id)
) {partitioned};
CREATE INDEX conversation_session ON conversation (tenant_id, session_id);

CREATE TABLE message (
    tenant_id text COLLATE "C" NOT NULL,
    audience bigint NOT NULL,
    seq bigint NOT NULL, -- the audience's version when it arrived
    changed bigint NOT NULL,
    conversation bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    arrived_at bigint NOT NULL,
    role text COLLATE "C" NOT NULL,
    content text NOT NULL,
    created_at bigint NOT NULL,
    token_count bigint,
    tool_calls_json text,
    tool_call_id text,
    citations_json text,
    run_id text,
    partial smallint NOT NULL,
    name text,
    terms bytea,
    marks bigint,
    length integer,
    vector halfvec,
    PRIMARY KEY (tenant_id, audience, seq),
    UNIQUE (tenant_id, audience, conversation, message_id),
    FOREIGN KEY (tenant_id, audience, conversation)
        REFERENCES conversation (tenant_id, audience, id)
) {partitioned};
CREATE INDEX message_changed ON message (tenant_id, audience, changed);
CREATE INDEX message_order ON message (tenant_id, audience, conversation, seq);

CREATE TABLE working (
    tenant_id text COLLATE "C" NOT NULL,
    owner bytea NOT NULL, -- a digest of the run's key
    user_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    state text NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, owner)
) {partitioned};
CREATE INDEX working_expiry ON working (tenant_id, expires_at);
CREATE INDEX working_realm ON working (tenant_id, user_id);

-- What is everyone's: tenant '' (no tenant has a blank name).
CREATE TABLE setting (
    tenant_id text COLLATE "C" NOT NULL DEFAULT '',
    name text COLLATE "C" NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (tenant_id, name)
);
INSERT INTO setting (name, value) VALUES
    ('cursor_secret', encode(sha256(convert_to(
        gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex'));

-- Indexes of hashes and vectors do not get smaller by compressing.
ALTER TABLE memory ALTER COLUMN terms SET STORAGE EXTERNAL;
ALTER TABLE message ALTER COLUMN terms SET STORAGE EXTERNAL;

-- A tenant is what the transaction says it is; where it says nothing, no row is anybody's.
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audience', 'memory', 'conversation', 'message', 'working']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_tenant ON %I TO muniment_app
            USING (tenant_id = current_setting(''muniment.tenant'', true))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO muniment_app', name);
    END LOOP;
END $$;

-- GLOBAL memories belong to their writer's tenant, and everybody may read them.
CREATE POLICY everybody_reads ON audience FOR SELECT TO muniment_app USING (shared);
CREATE POLICY everybody_reads ON memory FOR SELECT TO muniment_app USING (scope = 'global');

-- Settings are everybody's; the application may only say which model made the vectors.
ALTER TABLE setting ENABLE ROW LEVEL SECURITY;
CREATE POLICY everybody_reads ON setting FOR SELECT TO muniment_app USING (tenant_id = '');
CREATE POLICY model_is_recorded ON setting TO muniment_app
    USING (tenant_id = '' AND name IN ('embedding_model', 'embedding_width'));
GRANT SELECT, INSERT, UPDATE, DELETE ON setting TO muniment_app;
GRANT USAGE ON SEQUENCE audience_id, memory_seq TO muniment_app;

-- An audience counts its memories, so that a tenant's are summed and not scanned.
CREATE FUNCTION count_memories() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        UPDATE muniment.audience a SET tokens = a.tokens + d.tokens
        FROM (SELECT n.tenant_id, n.audience, sum(n.tokens - o.tokens) AS tokens
            FROM came n JOIN gone o ON o.tenant_id = n.tenant_id AND o.seq = n.seq
            WHERE n.tokens <> o.tokens GROUP BY n.tenant_id, n.audience) d
        WHERE a.tenant_id = d.tenant_id AND a.id = d.audience;
    ELSIF TG_OP = 'INSERT' THEN
        UPDATE muniment.audience a SET entries = a.entries + n.entries, tokens = a.tokens + n.tokens
        FROM (SELECT tenant_id, audience, count(*) AS entries, sum(tokens) AS tokens
            FROM came GROUP BY tenant_id, audience) n
        WHERE a.tenant_id = n.tenant_id AND a.id = n.audience;
    ELSE
        UPDATE muniment.audience a SET entries = a.entries - o.entries, tokens = a.tokens - o.tokens
        FROM (SELECT tenant_id, audience, count(*) AS entries, sum(tokens) AS tokens
            FROM gone GROUP BY tenant_id, audience) o
        WHERE a.tenant_id = o.tenant_id AND a.id = o.audience;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER memory_counted AFTER INSERT ON memory
    REFERENCING NEW TABLE AS came FOR EACH STATEMENT EXECUTE FUNCTION count_memories();
CREATE TRIGGER memory_recounted AFTER UPDATE ON memory
    REFERENCING NEW TABLE AS came OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION count_memories();
CREATE TRIGGER memory_uncounted AFTER DELETE ON memory
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_memories();

-- Rebuilding every index goes tenant by tenant; this names the next one and shows no row.
CREATE FUNCTION next_tenant(after text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muniment, pg_temp
AS 'SELECT min(tenant_id) FROM muniment.audience WHERE tenant_id > after';
REVOKE ALL ON FUNCTION next_tenant(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_tenant(text) TO muniment_app;
