-- Retention may have cut a link. What is left before the cut is looked for among so many rows,
-- since there is no index for it.
SELECT scheduled_at, sequence FROM (
    SELECT scheduled_at, job_no, sequence FROM run WHERE scheduled_at < ?1
    ORDER BY scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT ?3)
WHERE job_no = ?2 LIMIT 1
