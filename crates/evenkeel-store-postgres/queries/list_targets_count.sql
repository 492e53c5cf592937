SELECT coalesce((SELECT targets FROM numbering WHERE tenant_no = $1), 0);
