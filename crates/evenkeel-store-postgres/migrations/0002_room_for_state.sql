-- A row of job_state is narrow when the job is created and twice as wide after the first run, because
-- the times of the last run are then set. With less free space, the first runs of new jobs do not
-- fit on the page, and PostgreSQL writes every index of the table. Existing pages keep their free
-- space until they are rewritten.
ALTER TABLE job_state SET (fillfactor = 60);
