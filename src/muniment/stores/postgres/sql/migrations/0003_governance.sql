-- oldest code: 3
-- What searches served, by UTC day (YYYY-MM-DD).
CREATE TABLE served (
    tenant_id text COLLATE "C" NOT NULL,
    day text COLLATE "C" NOT NULL,
    searches bigint NOT NULL,
    entries bigint NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant_id, day)
) {partitioned};

-- `derived_from`, resolved: which row was derived from which.
CREATE TABLE derivation (
    tenant_id text COLLATE "C" NOT NULL,
    source bigint NOT NULL,
    derived bigint NOT NULL,
    PRIMARY KEY (tenant_id, source, derived),
    FOREIGN KEY (tenant_id, source) REFERENCES memory (tenant_id, seq) ON DELETE CASCADE,
    FOREIGN KEY (tenant_id, derived) REFERENCES memory (tenant_id, seq) ON DELETE CASCADE
) {partitioned};
CREATE INDEX derivation_derived ON derivation (tenant_id, derived);

-- Where a memory came from, by session: what an erased session's facts are found by.
CREATE INDEX memory_source ON memory (tenant_id, source_session_id)
    WHERE source_session_id IS NOT NULL;

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['served', 'derivation']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_tenant ON %I TO muniment_app
            USING (tenant_id = current_setting(''muniment.tenant'', true))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO muniment_app', name);
    END LOOP;
END $$;
