SELECT tenant_no, name, key_id, nonce, ciphertext FROM secret WHERE tenant_no = ?1 AND name = ?2
