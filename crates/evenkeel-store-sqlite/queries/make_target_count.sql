UPDATE tenant SET targets = targets + 1, next_target = coalesce(?2, next_target) WHERE tenant_no = ?1
