-- oldest code: 3
-- The audit log: one chain of records a tenant, each with the hash of the one before. The
-- application may add to it and read it, and neither change it nor take anything away.
CREATE TABLE audit (
    tenant_id text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,
    record_id text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL,
    line text NOT NULL, -- the record in its canonical form, as a log file has it
    PRIMARY KEY (tenant_id, sequence),
    UNIQUE (tenant_id, record_id)
) {partitioned};
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON audit TO muniment_app
    USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON audit TO muniment_app;

-- Verifying goes chain by chain; this names the next one and shows no record.
CREATE FUNCTION next_audited(after text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muniment, pg_temp
AS 'SELECT min(tenant_id) FROM muniment.audit WHERE tenant_id > after';
REVOKE ALL ON FUNCTION next_audited(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION next_audited(text) TO muniment_app;
