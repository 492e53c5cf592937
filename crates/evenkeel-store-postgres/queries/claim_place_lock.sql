-- Who gives out places of a limit has its lock until the end of the transaction. Nobody waits for it,
-- since they come in any order.
SELECT k.nth, pg_try_advisory_xact_lock(hashtextextended(
                  'evenkeel place ' || current_schema() || ' ' || encode(k.key, 'hex'), 0))
  FROM unnest($1::bytea[]) WITH ORDINALITY AS k(key, nth);
