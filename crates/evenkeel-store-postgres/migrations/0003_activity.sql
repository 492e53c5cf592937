-- What happened to the runs of a tenant in one time slot, as sums over all nodes. The array
-- `skipped` has one count per code of a skip reason, and `lateness` one count per bucket. Every
-- node updates the row of the present time slot every five seconds, so that pages need free space.
CREATE TABLE activity (
    tenant_no   int4 NOT NULL,
    slot        int4 NOT NULL,
    fired       int8 NOT NULL,
    completed   int8 NOT NULL,
    failed      int8 NOT NULL,
    timed_out   int8 NOT NULL,
    cancelled   int8 NOT NULL,
    busy_us     int8 NOT NULL,
    late_max_us int8 NOT NULL,
    skipped     int8[] NOT NULL,
    lateness    int8[] NOT NULL,
    PRIMARY KEY (tenant_no, slot)
) WITH (fillfactor = 70);
CREATE INDEX activity_oldest ON activity (slot);
