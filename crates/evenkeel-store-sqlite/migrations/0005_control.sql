-- How many attempts ended well, and how many failed or took too long, counted from here on.
ALTER TABLE job_state ADD COLUMN good_runs INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_state ADD COLUMN bad_runs INTEGER NOT NULL DEFAULT 0;

-- Chains for times up to this one go no further: a failed attempt is not tried again, one that lost
-- its worker is cancelled. A pause sets it to its moment, so that a run that somebody asks for
-- meanwhile is after it; a cancelled or deleted job has the largest number there is.
ALTER TABLE job_state ADD COLUMN stopped_at INTEGER;
UPDATE job_state SET stopped_at = 9223372036854775807
WHERE job_no IN (SELECT job_no FROM job WHERE standing = 3);

-- How many of its jobs are so; deleted ones are not.
ALTER TABLE tenant ADD COLUMN paused INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN cancelled INTEGER NOT NULL DEFAULT 0;
