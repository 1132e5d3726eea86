-- oldest code: 1
-- What replicas of a service share. Neither table holds text; both end with the conversation.
-- `talk` and `request` are digests, which an index takes however long the names are.
CREATE TABLE completion_lease (
    tenant_id text COLLATE "C" NOT NULL,
    talk bytea NOT NULL, -- of the user and the session
    holder text COLLATE "C" NOT NULL,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, talk)
) {partitioned};

CREATE TABLE keyed_request (
    tenant_id text COLLATE "C" NOT NULL,
    request bytea NOT NULL, -- of the user and the key
    talk bytea NOT NULL, -- of the user and the session
    fingerprint text NOT NULL,
    session_id text NOT NULL,
    question_id text NOT NULL,
    answer_id text,
    envelope text,
    expires_at bigint NOT NULL,
    PRIMARY KEY (tenant_id, request)
) {partitioned};
CREATE INDEX keyed_request_talk ON keyed_request (tenant_id, talk);
CREATE INDEX keyed_request_expiry ON keyed_request (tenant_id, expires_at);

DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['completion_lease', 'keyed_request']
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_tenant ON %I TO muniment_app
            USING (tenant_id = current_setting(''muniment.tenant'', true))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO muniment_app', name);
    END LOOP;
END $$;
