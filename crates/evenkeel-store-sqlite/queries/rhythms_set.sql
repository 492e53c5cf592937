UPDATE job_state SET rhythm = ?2, cost_us = ?3, cost_stated = ?4 WHERE job_no = ?1
