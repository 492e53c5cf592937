-- All there is to know of a job that neither waits nor runs nor has failed, as most jobs are most of
-- the time; `is_all` says whether this is one. The columns are those of get_jobs, whose long way to
-- the others costs as much to set up as all of this, even for a job that has none of them.
SELECT j.job_no, j.id, j.tenant_no, j.about, j.definition, j.standing, s.generation, j.created_at,
       j.updated_at, s.next_at, s.last_fired_at, s.live, 0::int8 AS waiting,
       s.executions, s.last_status, s.last_start_at, s.last_end_at, s.last_good_start_at,
       s.last_good_end_at, s.failures, s.average_us, s.variance,
       coalesce(s.placed_at, j.created_at) AS since, s.fired,
       NULL::int8[] AS running, NULL::int8[] AS newest_waiting,
       s.stopped_at, s.good_runs, s.bad_runs, NULL::text AS last_error, j.number, j.target_no, j.note,
       (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS now,
       s.live = 0 AND coalesce(s.last_status NOT IN (3, 5), true) AS is_all
  FROM job j JOIN job_state s USING (job_no)
 WHERE j.id = $1 AND j.tenant_no = $2 AND j.standing <> 3;
