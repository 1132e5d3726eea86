-- What replicas of a service share. Neither table holds text; both end with the conversation.
CREATE TABLE completion_lease (
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    session TEXT NOT NULL,
    holder TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, user, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE keyed_request (
    tenant TEXT NOT NULL,
    user TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    session TEXT NOT NULL,
    question_id TEXT NOT NULL,
    answer_id TEXT,
    envelope TEXT,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, user, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX keyed_request_session ON keyed_request (tenant, user, session);
CREATE INDEX keyed_request_expiry ON keyed_request (expires_at);

CREATE TRIGGER conversation_gone AFTER DELETE ON conversation BEGIN
    DELETE FROM completion_lease
    WHERE tenant = old.tenant AND user = old.user AND session = old.session;
    DELETE FROM keyed_request
    WHERE tenant = old.tenant AND user = old.user AND session = old.session;
END;
