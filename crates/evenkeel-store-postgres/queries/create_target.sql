WITH clock AS MATERIALIZED (
    SELECT coalesce($1::int8, (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS now
), made AS (
    INSERT INTO target (tenant_no, number, source_id, name, url, created_at, updated_at)
    SELECT $2::int4, $3::int8, $4::text, $5::text, $6::text, now, now FROM clock
        ON CONFLICT DO NOTHING
 RETURNING tenant_no
)
UPDATE numbering n SET targets = targets + 1, next_target = coalesce($7::int8, next_target)
  FROM made WHERE n.tenant_no = made.tenant_no;
