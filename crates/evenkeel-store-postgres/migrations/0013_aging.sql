-- An attempt waits since it could first have been claimed, wherever it waited. `rise` is its place
-- among all that have waited long: it never changes while it waits, so that nobody rewrites a row
-- because time passes. The higher of two orders counts: by priority, or by rise (core's Aging).
ALTER TABLE ready RENAME COLUMN ready_at TO since;
ALTER TABLE ready
    ADD COLUMN rise int8,
    -- it was given to the run: a change of the job's leaves it alone
    ADD COLUMN own_priority bool NOT NULL DEFAULT false;
-- What waits already rises by ten every five minutes after an hour, as it does unless somebody
-- says otherwise.
UPDATE ready SET rise = 10 * ((since + 3600000000) / 300000000 + 1) - priority;
ALTER TABLE ready ALTER COLUMN rise SET NOT NULL;
CREATE INDEX ready_rise ON ready (pool, lane, rise, should_start_by, since, job_no);

-- The priority that a run was given, if it was.
ALTER TABLE wake ADD COLUMN priority int2;
