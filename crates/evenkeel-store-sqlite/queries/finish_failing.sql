-- One more in a row, or the first since a good end.
INSERT INTO failing (job_no, runs, good_runs, is_due)
SELECT job_no, 1, good_runs, ?2 <= 1 FROM job_state
WHERE job_no = ?1 AND stopped_at IS NOT 9223372036854775807
ON CONFLICT DO UPDATE
SET runs = CASE WHEN good_runs = excluded.good_runs THEN runs + 1 ELSE 1 END,
    is_due = CASE WHEN good_runs = excluded.good_runs THEN runs + 1 ELSE 1 END >= ?2,
    good_runs = excluded.good_runs
