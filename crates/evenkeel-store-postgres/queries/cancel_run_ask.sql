-- The mark on the run itself is seen by a finish or requeue that waits for this row; the
-- cancellation is what its node reads.
WITH running AS (
    UPDATE run SET cancel_asked = true
     WHERE scheduled_at = $1 AND job_no = $2 AND sequence = $3 AND tenant_no = $4 AND status = 1
 RETURNING node_no, scheduled_at, job_no, sequence, attempt
), asked AS (
    INSERT INTO cancellation (node_no, scheduled_at, job_no, sequence, attempt)
    SELECT * FROM running ON CONFLICT DO NOTHING
)
SELECT scheduled_at, job_no, sequence, attempt FROM running;
