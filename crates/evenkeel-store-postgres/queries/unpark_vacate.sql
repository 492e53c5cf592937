-- An attempt that has ended never runs again, so nobody's lock is needed for its place.
DELETE FROM place
 WHERE ctid = ANY (ARRAY(
           SELECT p.ctid
             FROM unnest($1::bytea[], $2::int8[], $3::int8[], $4::int4[], $5::int2[])
                  AS d(key, scheduled_at, job_no, sequence, attempt)
            CROSS JOIN LATERAL (
                  SELECT p.ctid FROM place p
                   WHERE p.key = d.key AND p.scheduled_at = d.scheduled_at
                     AND p.job_no = d.job_no AND p.sequence = d.sequence
                     AND p.attempt = d.attempt
                     FOR UPDATE SKIP LOCKED) AS p
            WHERE coalesce((SELECT r.status FROM run r
                             WHERE r.scheduled_at = d.scheduled_at AND r.job_no = d.job_no
                               AND r.sequence = d.sequence AND r.attempt = d.attempt), 2)
                  NOT IN (0, 1)));
