UPDATE job j SET executor = d.executor, lane = d.lane
  FROM unnest($1::int8[], $2::text[], $3::int2[]) AS d(job_no, executor, lane)
 WHERE j.job_no = d.job_no
