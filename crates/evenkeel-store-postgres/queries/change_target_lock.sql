SELECT generation FROM target WHERE tenant_no = $1 AND number = $2 FOR UPDATE;
