UPDATE rhythm SET jobs = jobs + ?3, cost_us = cost_us + ?4 WHERE tenant_no = ?1 AND key = ?2
