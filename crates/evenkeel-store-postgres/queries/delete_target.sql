WITH gone AS (
    DELETE FROM target WHERE tenant_no = $1 AND number = $2 RETURNING tenant_no
)
UPDATE numbering n SET targets = targets - 1 FROM gone WHERE n.tenant_no = gone.tenant_no;
