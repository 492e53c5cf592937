SELECT tenant_no, name, key_id, nonce, ciphertext
FROM secret
WHERE ($1::int4 IS NULL OR tenant_no = $1) AND key_id <> $2 AND (tenant_no, name) > ($3::int4, $4::text)
ORDER BY tenant_no, name
LIMIT $5
