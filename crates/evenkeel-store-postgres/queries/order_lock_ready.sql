-- Whoever claims locks what waits before it locks the job's state. This waits for them here, and
-- they pass over what this has locked.
SELECT FROM ready WHERE job_no = ANY ($1::int8[])
 ORDER BY job_no, scheduled_at, sequence, attempt FOR UPDATE;
