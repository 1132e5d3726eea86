-- name: lock_audit
SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s, 1));

-- name: last_audit
SELECT sequence, hash, line FROM audit WHERE tenant_id = %(tenant)s
ORDER BY sequence DESC LIMIT 1;

-- name: add_audit
INSERT INTO audit (tenant_id, sequence, record_id, hash, line)
SELECT %(tenant)s, sequence, record_id, hash, line
FROM unnest(%(sequences)s::bigint[], %(record_ids)s::text[], %(hashes)s::text[],
    %(lines)s::text[]) AS given (sequence, record_id, hash, line);

-- name: audit_lines
SELECT sequence, line FROM audit
WHERE tenant_id = %(tenant)s AND sequence > %(after)s ORDER BY sequence LIMIT %(limit)s;

-- name: next_audited
SELECT next_audited(%(after)s);
