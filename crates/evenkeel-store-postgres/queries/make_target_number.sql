-- Locks the tenant's numbers: whoever makes a target or registers jobs does this first.
INSERT INTO numbering (tenant_no) VALUES ($1)
    ON CONFLICT (tenant_no) DO UPDATE SET next_target = numbering.next_target
RETURNING next_target;
