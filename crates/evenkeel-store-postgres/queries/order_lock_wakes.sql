-- As in order_lock_ready, for whoever fires a wake.
SELECT FROM wake WHERE job_no = ANY ($1::int8[])
 ORDER BY job_no, scheduled_at, sequence, attempt FOR UPDATE;
