-- How many jobs of a tenant have a rhythm, and what one run of each costs together. Has a row if
-- some job has it.
CREATE TABLE rhythm (
    tenant_no   INTEGER NOT NULL,
    key         INTEGER NOT NULL,
    rhythm      TEXT NOT NULL,
    jobs        INTEGER NOT NULL,
    cost_us     INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, key)
) STRICT, WITHOUT ROWID;

-- What a job is counted as: the key of its rhythm, or 0 if it counts for nothing. NULL is a job from
-- before load was counted, which nobody has looked at yet.
ALTER TABLE job_state ADD COLUMN rhythm INTEGER;
ALTER TABLE job_state ADD COLUMN cost_us INTEGER NOT NULL DEFAULT 0;
-- Somebody said what it costs: it does not follow what its runs take.
ALTER TABLE job_state ADD COLUMN cost_stated INTEGER NOT NULL DEFAULT 0;
-- Says nothing of `slot`, which firing writes, so that firing need not look at it.
CREATE INDEX job_state_uncounted ON job_state (job_no) WHERE rhythm IS NULL;

-- state: 0 planned, 1 goes on, 2 over, 3 stopped.
CREATE TABLE rebalance (
    rebalance_no INTEGER PRIMARY KEY AUTOINCREMENT,
    id          BLOB NOT NULL UNIQUE,
    tenant_no   INTEGER NOT NULL REFERENCES tenant,
    state       INTEGER NOT NULL,
    undoes      BLOB,
    undone_by   BLOB,
    created_by  TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    touched_at  INTEGER,
    ended_at    INTEGER,
    parts       INTEGER NOT NULL,
    parts_done  INTEGER NOT NULL,
    planned     INTEGER NOT NULL,
    moved       INTEGER NOT NULL,
    changed     INTEGER NOT NULL,
    skipped     INTEGER NOT NULL,
    summary     TEXT NOT NULL
) STRICT;
CREATE INDEX rebalance_newest ON rebalance (tenant_no, created_at, id) WHERE state <> 0;
CREATE INDEX rebalance_running ON rebalance (tenant_no) WHERE state = 1;
CREATE INDEX rebalance_oldest ON rebalance (created_at) WHERE state <> 1;

-- Its moves in batches, and a byte for each that says whether it was made.
CREATE TABLE rebalance_part (
    rebalance_no INTEGER NOT NULL,
    part        INTEGER NOT NULL,
    moves       BLOB NOT NULL,
    made        BLOB
) STRICT;
CREATE UNIQUE INDEX rebalance_part_place ON rebalance_part (rebalance_no, part);

-- How evenly load was spread, hour by hour.
CREATE TABLE balance_score (
    tenant_no   INTEGER NOT NULL,
    hour        INTEGER NOT NULL,
    score       REAL NOT NULL,
    next_score  REAL NOT NULL,
    cost_score  REAL NOT NULL,
    peak        REAL NOT NULL,
    mean        REAL NOT NULL,
    jobs        INTEGER NOT NULL,
    PRIMARY KEY (tenant_no, hour)
) STRICT, WITHOUT ROWID;
CREATE INDEX balance_score_oldest ON balance_score (hour);
