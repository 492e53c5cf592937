SELECT number, url FROM target WHERE tenant_no = $1 AND number = ANY ($2::int8[]);
