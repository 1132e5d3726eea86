-- oldest code: 3
-- What an import has read and not yet published: nobody's until then.
CREATE TABLE staged (
    tenant_id text COLLATE "C" NOT NULL,
    import bigint NOT NULL,
    line bigint NOT NULL,
    begun bigint NOT NULL,
    old_id text COLLATE "C",
    link text COLLATE "C",
    twin text COLLATE "C",
    audience_key text COLLATE "C" NOT NULL,
    audience_digest bytea NOT NULL,
    audience_user text COLLATE "C",
    digest text COLLATE "C" NOT NULL,
    tokens integer NOT NULL,
    terms bytea NOT NULL,
    marks bigint NOT NULL,
    length integer NOT NULL,
    vector halfvec,
    realm_session text COLLATE "C",
    memory_id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    memory_type text COLLATE "C" NOT NULL,
    project_id text COLLATE "C",
    user_id text COLLATE "C",
    principal_id text COLLATE "C",
    session_id text COLLATE "C",
    run_id text COLLATE "C",
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
    trust smallint NOT NULL,
    source text COLLATE "C",
    PRIMARY KEY (tenant_id, import, line)
) {partitioned};
CREATE INDEX staged_name ON staged (tenant_id, import, old_id) WHERE old_id IS NOT NULL;
CREATE INDEX staged_link ON staged (tenant_id, import, superseded_by)
    WHERE superseded_by IS NOT NULL;
ALTER TABLE staged ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON staged TO muniment_app
    USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON staged TO muniment_app;
