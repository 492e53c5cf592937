CREATE TABLE IF NOT EXISTS schema_migration (
    version     int4 PRIMARY KEY,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
