-- What happened to the runs of a tenant in one time slot, as sums over all nodes. The array
-- `skipped` has one count per code of a skip reason, and `lateness` one count per bucket.
CREATE TABLE activity (
    tenant_no   INTEGER NOT NULL,
    slot        INTEGER NOT NULL,
    fired       INTEGER NOT NULL,
    completed   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    timed_out   INTEGER NOT NULL,
    cancelled   INTEGER NOT NULL,
    busy_us     INTEGER NOT NULL,
    late_max_us INTEGER NOT NULL,
    skipped     TEXT NOT NULL,
    lateness    TEXT NOT NULL,
    PRIMARY KEY (tenant_no, slot)
) STRICT, WITHOUT ROWID;
CREATE INDEX activity_oldest ON activity (slot);
