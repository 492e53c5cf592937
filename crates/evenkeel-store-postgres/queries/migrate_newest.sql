SELECT coalesce(max(version), 0)::int4 FROM schema_migration;
