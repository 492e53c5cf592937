SELECT scheduled_at, job_no, sequence, attempt, priority, since, rise
  FROM ready
 WHERE (scheduled_at, job_no, sequence, attempt) > ($1::int8, $2::int8, $3::int4, $4::int2)
 ORDER BY scheduled_at, job_no, sequence, attempt
 LIMIT $5;
