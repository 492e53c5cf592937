SELECT k.nth, (SELECT count(*) FROM place p WHERE p.key = k.key)
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);
