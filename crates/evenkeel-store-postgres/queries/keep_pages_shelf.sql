-- Locks the shelf, so that those who keep pages of one job at once do it one after the other.
INSERT INTO page_shelf AS s (job_no)
SELECT job_no FROM job WHERE job_no = $1 AND tenant_no = $2 AND standing <> 3
    ON CONFLICT (job_no) DO UPDATE SET bytes = s.bytes
RETURNING bytes, coalesce($3::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8);
