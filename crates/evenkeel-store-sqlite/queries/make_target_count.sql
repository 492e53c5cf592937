UPDATE tenant SET targets = targets + 1, next_target = max(next_target, ?2 + 1) WHERE tenant_no = ?1
