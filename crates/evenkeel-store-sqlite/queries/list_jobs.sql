SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.standing, j.created_at, j.updated_at,
       s.generation, s.next_at, s.last_fired_at, s.live, s.executions, s.last_status, s.failures,
       s.last_start_at, s.last_end_at, s.last_good_start_at, s.last_good_end_at,
       s.average_us, s.variance, coalesce(s.placed_at, j.created_at) AS since, s.fired,
       s.head_at, s.head_sequence, s.stopped_at, s.good_runs, s.bad_runs, s.failed_at,
       j.number, j.target_no, j.note,
       (SELECT count(*) FROM ready r WHERE r.job_no = j.job_no)
           + (SELECT count(*) FROM wake w WHERE w.job_no = j.job_no) AS waiting
FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.job_no = ?1 AND j.standing <> 3
