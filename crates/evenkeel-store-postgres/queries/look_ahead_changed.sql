WITH told AS (
    DELETE FROM changed_job c
     USING (SELECT shard, job_no FROM changed_job WHERE shard = ANY ($1::int2[])
             LIMIT $2 FOR UPDATE SKIP LOCKED) AS t
     WHERE c.shard = t.shard AND c.job_no = t.job_no
 RETURNING c.job_no
)
SELECT s.job_no, s.tenant_no, CASE WHEN s.active THEN s.next_at END AS next_at, s.generation, s.live,
       s.head_at, s.head_sequence, s.average_us, j.definition
  FROM told JOIN job_state s USING (job_no) JOIN job j USING (job_no)
 WHERE NOT s.deleted;
