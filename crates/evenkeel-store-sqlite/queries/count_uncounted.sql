-- Whatever changes a job counts it, too: what was read counts only if nothing has.
UPDATE job_state SET rhythm = ?3, cost_us = ?4, cost_stated = ?5
WHERE job_no = ?1 AND rhythm IS NULL AND generation = ?2
