-- Times that were fired; whether the next one follows from the end of a run; whether the job is on
-- the watch list, which every end asks for.
ALTER TABLE job_state ADD COLUMN fired INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_state ADD COLUMN by_end INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job_state ADD COLUMN watched INTEGER NOT NULL DEFAULT 0;

-- When an attempt may be claimed, and the names of the nodes that may not (a JSON array, or none).
ALTER TABLE ready ADD COLUMN open_from INTEGER;
ALTER TABLE ready ADD COLUMN open_until INTEGER;
ALTER TABLE ready ADD COLUMN forbidden_nodes TEXT;
CREATE INDEX ready_closing ON ready (open_until) WHERE open_until IS NOT NULL;

-- A newer time takes its place; else somebody wants it ended.
ALTER TABLE cancellation ADD COLUMN superseded INTEGER NOT NULL DEFAULT 0;

-- How many of its jobs were judged so.
ALTER TABLE tenant ADD COLUMN warnings INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tenant ADD COLUMN errors INTEGER NOT NULL DEFAULT 0;

-- Jobs that something happened to, and how they were judged; `level` is NULL until they are.
CREATE TABLE watch (
    job_no      INTEGER PRIMARY KEY,
    tenant_no   INTEGER NOT NULL,
    shard       INTEGER NOT NULL,
    judge_at    INTEGER NOT NULL,
    -- Starts anywhere: a job that comes back is not taken for what it was.
    touched     INTEGER NOT NULL,
    level       INTEGER,
    reason      INTEGER,
    error_at    INTEGER,
    since       INTEGER
) STRICT;
CREATE INDEX watch_due ON watch (shard, judge_at);
CREATE INDEX watch_risk ON watch (tenant_no, error_at, job_no) WHERE level > 0;

INSERT INTO watch (job_no, tenant_no, shard, judge_at, touched)
SELECT s.job_no, s.tenant_no, s.shard, 0, 0
FROM job_state s JOIN job j ON j.job_no = s.job_no
WHERE s.failures > 0 AND j.standing <> 3;
UPDATE job_state SET watched = 1 WHERE job_no IN (SELECT job_no FROM watch);
