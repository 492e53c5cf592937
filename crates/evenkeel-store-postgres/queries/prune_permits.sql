-- One page of places, of which those go whose attempts have ended.
WITH page AS MATERIALIZED (
    SELECT ctid, key, scheduled_at, job_no, sequence, attempt
      FROM place
     WHERE (key, scheduled_at, job_no, sequence, attempt)
           > ($1::bytea, $2::int8, $3::int8, $4::int4, $5::int2)
     ORDER BY key, scheduled_at, job_no, sequence, attempt LIMIT $6
), gone AS (
    DELETE FROM place
     WHERE ctid = ANY (ARRAY(
               SELECT p.ctid FROM page p
                WHERE coalesce((SELECT r.status FROM run r
                                 WHERE r.scheduled_at = p.scheduled_at AND r.job_no = p.job_no
                                   AND r.sequence = p.sequence AND r.attempt = p.attempt), 2)
                      NOT IN (0, 1)))
)
SELECT (SELECT count(*) FROM page), key, scheduled_at, job_no, sequence, attempt
  FROM page ORDER BY key DESC, scheduled_at DESC, job_no DESC, sequence DESC, attempt DESC LIMIT 1;
