UPDATE job_state s
   SET rhythm = d.rhythm, cost_us = d.cost_us, cost_stated = d.cost_stated, counted = d.rhythm <> 0
  FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::bool[])
       AS d(job_no, rhythm, cost_us, cost_stated)
 WHERE s.job_no = d.job_no;
