-- oldest code: 3
-- What changed since an image was made is read in pages: by version, and by number within one.
CREATE INDEX memory_news ON memory (tenant_id, audience, changed, seq);
CREATE INDEX message_news ON message (tenant_id, audience, changed, seq);
DROP INDEX memory_changed;
DROP INDEX message_changed;
