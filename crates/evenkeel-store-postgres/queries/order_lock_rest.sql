-- What came to wait between the locks on what waits and those on the states: nothing does any more.
-- Whoever claims or fires one of these waits for a state, so that to wait for them here would close
-- a ring. Says whether all that waits is locked.
WITH queue AS MATERIALIZED (
    SELECT FROM ready WHERE job_no = ANY ($1::int8[]) FOR UPDATE SKIP LOCKED
), wakes AS MATERIALIZED (
    SELECT FROM wake WHERE job_no = ANY ($1::int8[]) FOR UPDATE SKIP LOCKED
)
SELECT (SELECT count(*) FROM queue) = (SELECT count(*) FROM ready WHERE job_no = ANY ($1::int8[]))
   AND (SELECT count(*) FROM wakes) = (SELECT count(*) FROM wake WHERE job_no = ANY ($1::int8[]));
