DELETE FROM rhythm WHERE tenant_no = ?1 AND key = ?2 AND jobs <= 0
