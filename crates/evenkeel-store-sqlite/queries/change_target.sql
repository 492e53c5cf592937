UPDATE target SET source_id = ?3, name = ?4, url = ?5, updated_at = ?6, generation = generation + 1
WHERE tenant_no = ?1 AND number = ?2
