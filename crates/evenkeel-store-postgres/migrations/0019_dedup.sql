-- Who took a key last, of jobs that are not to be there twice. Whether that still counts is looked at
-- when somebody else wants the key: claims and ends of runs write nothing here. The holder is known
-- by its id, which it has before it is stored: so whoever takes a key locks it by putting it in.
CREATE TABLE dedup (
    tenant_no    int4 NOT NULL,
    -- 16 bytes of a hash of the executor and the text
    key          uuid NOT NULL,
    job_id       uuid NOT NULL,
    taken_at     int8 NOT NULL,
    PRIMARY KEY (tenant_no, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The key of a job that has one: whoever asks for a run of any other need not look for it.
ALTER TABLE job ADD COLUMN dedup_key uuid;
ALTER TABLE ready DROP COLUMN dedup_key;
