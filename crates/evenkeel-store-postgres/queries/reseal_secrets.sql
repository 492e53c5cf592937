UPDATE secret AS s SET key_id = new.key_id, nonce = new.nonce, ciphertext = new.ciphertext
FROM unnest($2::int4[], $3::text[], $4::bytea[], $5::text[], $6::bytea[], $7::bytea[])
     AS new (tenant_no, name, if_nonce, key_id, nonce, ciphertext)
WHERE s.tenant_no = new.tenant_no AND s.name = new.name AND s.nonce = new.if_nonce
  AND ($1::int4 IS NULL OR s.tenant_no = $1)
