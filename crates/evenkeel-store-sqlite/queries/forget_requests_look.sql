SELECT EXISTS (SELECT 1 FROM request WHERE begun_at < ?1);
