UPDATE secret SET key_id = ?4, nonce = ?5, ciphertext = ?6
WHERE tenant_no = ?1 AND name = ?2 AND nonce = ?3
