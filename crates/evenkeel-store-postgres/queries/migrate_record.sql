INSERT INTO schema_migration (version) VALUES ($1);
