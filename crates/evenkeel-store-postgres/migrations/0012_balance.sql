-- How many jobs of a tenant have a rhythm, and what a run of each costs, together. Firing does not
-- change a job's rhythm, so only what gives or takes a job its next time writes here: always last in
-- its transaction, and in the order of the key, so that two of them wait for each other one way
-- only. The sum is a number of any size: jobs of a year each, if they are many, overflow any other.
CREATE TABLE rhythm (
    tenant_no   int4 NOT NULL,
    key         int8 NOT NULL,
    rhythm      text NOT NULL,
    jobs        int8 NOT NULL,
    cost_us     numeric NOT NULL,
    PRIMARY KEY (tenant_no, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- What a job counts for. `rhythm` is NULL as long as nobody has looked, 0 if it has none; `counted`
-- says that the job is in the table above: while it has a next time and a rhythm. They stand at the
-- end, behind what firing and finishing write, so that the log does not hold them.
ALTER TABLE job_state
    ADD COLUMN rhythm int8,
    ADD COLUMN cost_us int8 NOT NULL DEFAULT 0,
    ADD COLUMN cost_stated bool NOT NULL DEFAULT false,
    ADD COLUMN counted bool NOT NULL DEFAULT false;
-- Jobs from before there were rhythms. Of what this index looks at firing writes `slot` alone, which
-- stands in another one anyway.
CREATE INDEX job_state_uncounted ON job_state (job_no) WHERE rhythm IS NULL AND slot IS NOT NULL;
-- A walk over all jobs of a tenant finds in its index what it needs of them, and leaves the wide
-- rows alone.
DROP INDEX job_tenant;
CREATE INDEX job_tenant ON job (tenant_no, job_no) INCLUDE (id, created_at) WHERE standing <> 3;

-- Plans to move jobs, and what became of them. State: 0 planned, 1 running, 2 done, 3 stopped.
CREATE TABLE rebalance (
    id          uuid PRIMARY KEY,
    tenant_no   int4 NOT NULL,
    state       int2 NOT NULL,
    undoes      uuid,
    undone_by   uuid,
    created_by  text NOT NULL,
    created_at  int8 NOT NULL,
    touched_at  int8,
    ended_at    int8,
    parts       int4 NOT NULL,
    parts_done  int4 NOT NULL,
    planned     int8 NOT NULL,
    moved       int8 NOT NULL,
    changed     int8 NOT NULL,
    skipped     int8 NOT NULL,
    summary     text NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX rebalance_place ON rebalance (tenant_no, created_at, id) WHERE state <> 0;
CREATE INDEX rebalance_age ON rebalance (created_at);

CREATE TABLE rebalance_part (
    rebalance   uuid NOT NULL,
    part        int4 NOT NULL,
    moves       bytea NOT NULL,
    made        bool[],
    PRIMARY KEY (rebalance, part)
);
-- They are packed already.
ALTER TABLE rebalance_part ALTER COLUMN moves SET STORAGE EXTERNAL;

-- How even the load of a tenant was, hour by hour.
CREATE TABLE balance_score (
    tenant_no   int4 NOT NULL,
    hour        int8 NOT NULL,
    score       float8 NOT NULL,
    next_score  float8 NOT NULL,
    cost_score  float8 NOT NULL,
    peak        float8 NOT NULL,
    mean        float8 NOT NULL,
    jobs        int8 NOT NULL,
    PRIMARY KEY (tenant_no, hour)
);
CREATE INDEX balance_score_age ON balance_score (hour);
