WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), d AS MATERIALIZED (
    SELECT * FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                         $9::int8[], $10::int4[], $11::bool[], $12::text[], $13::int2[],
                         $14::int8[], $15::int8[], $16::bool[])
                  WITH ORDINALITY
                  AS d(id, name, configuration, source_id, about, definition, next_at, slot, by_end,
                       executor, lane, rhythm, cost_us, cost_stated, nth)
), made AS (
    INSERT INTO job (id, tenant_no, name, configuration, source_id, about, definition, created_at,
                     updated_at, executor, lane)
    SELECT id, $2, name, configuration, source_id, about, definition, now, now, executor, lane
      FROM d, clock ORDER BY nth
        ON CONFLICT (tenant_no, name, configuration) WHERE standing <> 3 DO NOTHING
 RETURNING job_no, id
), placed AS (
    INSERT INTO job_state (job_no, tenant_no, shard, next_at, slot, by_end, rhythm, cost_us,
                           cost_stated, counted)
    SELECT m.job_no, $2, m.job_no & 255, d.next_at, d.slot, d.by_end, d.rhythm, d.cost_us,
           d.cost_stated, d.rhythm <> 0
      FROM made m JOIN d USING (id)
), told AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT m.job_no & 255, m.job_no
      FROM made m JOIN d USING (id) CROSS JOIN clock
     WHERE d.slot <= now / 900000000 + 1
        ON CONFLICT DO NOTHING
), counted AS (
    UPDATE tenant SET job_count = job_count + (SELECT count(*) FROM made) WHERE tenant_no = $2
)
SELECT id, job_no FROM made;
