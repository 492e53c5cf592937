-- What lists ask for. Nothing here stands in an index that firing writes: `slot` changes once in a
-- quarter of an hour, and everything else only when somebody changes the job.
--
-- Names are ordered letter by letter, whatever the database's language: then their index also finds
-- what starts alike, and all nodes and stores agree on the order.
ALTER TABLE job
    ALTER COLUMN name TYPE text COLLATE "C",
    ALTER COLUMN configuration TYPE text COLLATE "C",
    ALTER COLUMN source_id TYPE text COLLATE "C",
    ADD COLUMN executor text,
    ADD COLUMN lane int2 NOT NULL DEFAULT 1;
-- What cannot be read must not keep the others from being brought up to date.
CREATE OR REPLACE FUNCTION pg_temp.read_json(stored text) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    RETURN stored::json;
EXCEPTION WHEN others THEN
    RETURN NULL;
END $$;
UPDATE job j
   SET executor = d.json -> 'executor' ->> 'kind',
       lane = CASE d.json ->> 'lane' WHEN 'critical' THEN 0 WHEN 'batch' THEN 2 ELSE 1 END
  FROM (SELECT job_no, pg_temp.read_json(definition) AS json FROM job) AS d
 WHERE d.job_no = j.job_no;

-- Texts, numbers and truth values at the top of the metadata. Only jobs that have some have rows.
CREATE TABLE job_label (
    tenant_no   int4 NOT NULL,
    key         text COLLATE "C" NOT NULL,
    value       text COLLATE "C" NOT NULL,
    job_no      int8 NOT NULL,
    PRIMARY KEY (tenant_no, key, value, job_no)
);
CREATE INDEX job_label_job ON job_label (job_no);
INSERT INTO job_label (tenant_no, key, value, job_no)
SELECT j.tenant_no, l.key, l.value #>> '{}', j.job_no
  FROM (SELECT tenant_no, job_no, pg_temp.read_json(about) -> 'metadata' AS metadata
          FROM job WHERE standing <> 3 AND about NOT LIKE '%\\u0000%') AS j
 CROSS JOIN LATERAL json_each(CASE json_typeof(j.metadata) WHEN 'object' THEN j.metadata END) AS l
 WHERE json_typeof(l.value) IN ('string', 'number', 'boolean')
   AND octet_length(l.key) <= 255 AND octet_length(l.value #>> '{}') <= 255
    ON CONFLICT DO NOTHING;

DROP INDEX job_source;
CREATE INDEX job_source ON job (tenant_no, source_id, job_no)
    WHERE standing <> 3 AND source_id IS NOT NULL;
CREATE INDEX job_updated ON job (tenant_no, updated_at, job_no) WHERE standing <> 3;
CREATE INDEX job_stopped ON job (tenant_no, standing, job_no) WHERE standing IN (1, 2);
-- Jobs that take part and have no next time: they wait, run, or are over.
CREATE INDEX job_state_unplaced ON job_state (tenant_no, job_no) WHERE slot IS NULL AND active;
ANALYZE job;
ANALYZE job_label;

-- Sums over runs. Nodes add to them every few seconds.
CREATE TABLE tally (
    tenant_no   int4 PRIMARY KEY,
    completed   int8 NOT NULL DEFAULT 0,
    failed      int8 NOT NULL DEFAULT 0,
    timed_out   int8 NOT NULL DEFAULT 0,
    cancelled   int8 NOT NULL DEFAULT 0,
    retries     int8 NOT NULL DEFAULT 0,
    stolen      int8 NOT NULL DEFAULT 0,
    good_us     int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
-- When a node last said something, and how many of a tenant's attempts ran on it then.
CREATE TABLE tally_node (
    node_no     int4 PRIMARY KEY,
    said_at     int8 NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE tally_running (
    node_no     int4 NOT NULL,
    tenant_no   int4 NOT NULL,
    running     int4 NOT NULL,
    PRIMARY KEY (node_no, tenant_no)
) WITH (fillfactor = 50);

-- Failures that have something in common.
CREATE TABLE failure (
    tenant_no   int4 NOT NULL,
    fingerprint int8 NOT NULL,
    count       int8 NOT NULL,
    first_at    int8 NOT NULL,
    last_at     int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    job_no      int8 NOT NULL,
    sequence    int4 NOT NULL,
    attempt     int2 NOT NULL,
    error       text NOT NULL,
    PRIMARY KEY (tenant_no, fingerprint)
);
CREATE INDEX failure_newest ON failure (tenant_no, last_at, fingerprint);
CREATE INDEX failure_oldest ON failure (last_at);
