INSERT INTO numbering (tenant_no, next_target) VALUES ($1, coalesce($2::int8, 1) + 1)
    ON CONFLICT (tenant_no) DO UPDATE
   SET next_target = greatest(numbering.next_target,
                              coalesce($2::int8, numbering.next_target) + 1)
RETURNING coalesce($2::int8, next_target - 1);
