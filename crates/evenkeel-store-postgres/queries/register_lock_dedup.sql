-- Keys that nobody has are taken; the others are locked and left as they are, which is what a
-- condition that never holds is for. In the order of the keys, as everybody does. Says which are new.
INSERT INTO dedup (tenant_no, key, job_id, taken_at)
SELECT $1, d.key, d.job_id,
       coalesce($4::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8)
  FROM unnest($2::uuid[], $3::uuid[]) AS d(key, job_id)
 ORDER BY d.key
    ON CONFLICT (tenant_no, key) DO UPDATE SET taken_at = dedup.taken_at WHERE false
RETURNING key;
