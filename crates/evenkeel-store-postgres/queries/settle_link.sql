-- A trigger becomes the newest chain of its job when it is fired; this one never is.
WITH before AS MATERIALIZED (
    SELECT head_at, head_sequence FROM job_state WHERE job_no = $1 FOR NO KEY UPDATE
), linked AS (
    UPDATE job_state SET head_at = $2, head_sequence = $3 WHERE job_no = $1
)
SELECT head_at, head_sequence FROM before;
