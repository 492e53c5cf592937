UPDATE job SET target_no = NULL, target_since = NULL WHERE tenant_no = ?1 AND target_no = ?2
