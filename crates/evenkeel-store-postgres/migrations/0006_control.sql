-- How many attempts ended well, and how many failed or took too long, counted from here on. They
-- stand next to what a finish writes anyway.
ALTER TABLE job_state
    ADD COLUMN good_runs int4 NOT NULL DEFAULT 0,
    ADD COLUMN bad_runs int4 NOT NULL DEFAULT 0;

-- Chains for times up to this one go no further: a failed attempt is not tried again, one that lost
-- its worker is cancelled. A pause sets it to its moment, so that a run that somebody asks for
-- meanwhile is after it; a cancelled or deleted job has the largest number there is. Here as well as
-- in job.standing, so that a finish sees it on the row that it locks.
ALTER TABLE job_state ADD COLUMN stopped_at int8;
UPDATE job_state SET stopped_at = 9223372036854775807 WHERE deleted;
ALTER TABLE job_state DROP COLUMN deleted;

-- How many of its jobs are so; deleted ones are not.
ALTER TABLE tenant
    ADD COLUMN paused int8 NOT NULL DEFAULT 0,
    ADD COLUMN cancelled int8 NOT NULL DEFAULT 0;
