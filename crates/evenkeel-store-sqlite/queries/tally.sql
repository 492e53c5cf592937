INSERT INTO tally (tenant_no, completed, failed, timed_out, cancelled, retries, stolen, good_us)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (tenant_no) DO UPDATE
SET completed = completed + excluded.completed, failed = failed + excluded.failed,
    timed_out = timed_out + excluded.timed_out, cancelled = cancelled + excluded.cancelled,
    retries = retries + excluded.retries, stolen = stolen + excluded.stolen,
    good_us = good_us + excluded.good_us
