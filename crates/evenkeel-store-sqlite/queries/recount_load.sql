UPDATE job_state SET cost_us = ?2 WHERE job_no = ?1
