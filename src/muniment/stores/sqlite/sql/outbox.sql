-- name: put_outbox
INSERT INTO outbox (id, at, event, realm, data) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: waiting_outbox
SELECT seq, id, at, event, realm, data FROM outbox ORDER BY seq LIMIT ?1;

-- name: take_outbox
DELETE FROM outbox WHERE seq IN (SELECT value FROM json_each(?1));

-- name: count_outbox
SELECT count(*) FROM outbox;

-- name: outbox_ids
SELECT id FROM outbox ORDER BY seq LIMIT ?1;
