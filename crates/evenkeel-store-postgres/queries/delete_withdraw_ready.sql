DELETE FROM ready WHERE job_no = $1
RETURNING scheduled_at, job_no, sequence, attempt, fence, crashes, prev_at, prev_sequence;
