UPDATE job SET target_no = NULL WHERE tenant_no = ?1 AND target_no = ?2
