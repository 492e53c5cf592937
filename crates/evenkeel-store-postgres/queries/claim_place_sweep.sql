-- Places whose attempts do not run any more, or not yet again. The caller has the locks of the limits.
-- The status is not looked up by a join, which a plan made while there were none might do the wrong
-- way round.
DELETE FROM place
 WHERE ctid = ANY (ARRAY(
           SELECT p.ctid FROM unnest($1::bytea[]) AS k(key)
            CROSS JOIN LATERAL (
                  SELECT p.ctid FROM place p
                   WHERE p.key = k.key
                     AND coalesce((SELECT r.status FROM run r
                                    WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                                      AND r.sequence = p.sequence AND r.attempt = p.attempt), 0)
                         <> 1
                     FOR UPDATE SKIP LOCKED) AS p));
