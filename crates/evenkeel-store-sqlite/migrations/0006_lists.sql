-- What lists ask for. Nothing here stands in an index that firing writes: `slot` changes once in a
-- quarter of an hour, and everything else only when somebody changes the job.
ALTER TABLE job ADD COLUMN executor TEXT;
ALTER TABLE job ADD COLUMN lane INTEGER NOT NULL DEFAULT 1;
-- What cannot be read must not keep the others from being brought up to date.
UPDATE job SET executor = definition ->> '$.executor.kind',
               lane = CASE definition ->> '$.lane' WHEN 'critical' THEN 0 WHEN 'batch' THEN 2 ELSE 1 END
WHERE json_valid(definition);

-- Texts, numbers and truth values at the top of the metadata. Only jobs that have some have rows.
CREATE TABLE job_label (
    tenant_no   INTEGER NOT NULL,
    key         TEXT NOT NULL,
    value       TEXT NOT NULL,
    job_no      INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, key, value, job_no)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_label_job ON job_label (job_no, key, value);
INSERT INTO job_label (tenant_no, key, value, job_no)
SELECT j.tenant_no, l.key,
       CASE l.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
                   WHEN 'text' THEN l.value ELSE j.about -> l.fullkey END,
       j.job_no
FROM job j, json_each(CASE WHEN json_valid(j.about) THEN j.about ELSE '{}' END, '$.metadata') l
WHERE j.standing <> 3 AND json_valid(j.about) AND l.type IN ('true', 'false', 'integer', 'real', 'text')
  AND json_type(j.about, '$.metadata') = 'object'
  AND length(CAST(l.key AS BLOB)) <= 255 AND length(CAST(l.value AS BLOB)) <= 255;

DROP INDEX job_source;
CREATE INDEX job_source ON job (tenant_no, source_id, job_no)
    WHERE standing <> 3 AND source_id IS NOT NULL;
CREATE INDEX job_updated ON job (tenant_no, updated_at, job_no) WHERE standing <> 3;
CREATE INDEX job_stopped ON job (tenant_no, standing, job_no) WHERE standing IN (1, 2);
-- Jobs that take part and have no next time: they wait, run, or are over.
CREATE INDEX job_state_unplaced ON job_state (tenant_no, job_no) WHERE slot IS NULL AND active = 1;

-- Sums over runs. Nodes add to them every few seconds.
CREATE TABLE tally (
    tenant_no   INTEGER PRIMARY KEY,
    completed   INTEGER NOT NULL DEFAULT 0,
    failed      INTEGER NOT NULL DEFAULT 0,
    timed_out   INTEGER NOT NULL DEFAULT 0,
    cancelled   INTEGER NOT NULL DEFAULT 0,
    retries     INTEGER NOT NULL DEFAULT 0,
    stolen      INTEGER NOT NULL DEFAULT 0,
    good_us     INTEGER NOT NULL DEFAULT 0
) STRICT;
-- When a node last said something, and how many of a tenant's attempts ran on it then.
CREATE TABLE tally_node (
    node_no     INTEGER PRIMARY KEY,
    said_at     INTEGER NOT NULL
) STRICT;
CREATE TABLE tally_running (
    node_no     INTEGER NOT NULL,
    tenant_no   INTEGER NOT NULL,
    running     INTEGER NOT NULL,
    PRIMARY KEY (node_no, tenant_no)
) STRICT, WITHOUT ROWID;

-- Failures that have something in common.
CREATE TABLE failure (
    tenant_no   INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    count       INTEGER NOT NULL,
    first_at    INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    error       TEXT NOT NULL,
    PRIMARY KEY (tenant_no, fingerprint)
) STRICT;
CREATE INDEX failure_newest ON failure (tenant_no, last_at, fingerprint);
CREATE INDEX failure_oldest ON failure (last_at);
