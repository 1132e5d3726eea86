-- oldest code: 3
-- Sessions and messages that an import has read and not yet published: nobody's until then.
CREATE TABLE staged_talk (
    tenant_id text COLLATE "C" NOT NULL,
    import bigint NOT NULL,
    line bigint NOT NULL,
    begun bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    session_id text COLLATE "C" NOT NULL,
    record text NOT NULL,
    vector halfvec,
    PRIMARY KEY (tenant_id, import, line)
) {partitioned};
ALTER TABLE staged_talk ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON staged_talk TO muniment_app
    USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON staged_talk TO muniment_app;
