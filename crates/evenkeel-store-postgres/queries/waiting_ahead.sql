-- Of the lane those that rank as high by their priority, and those that do by what they have waited.
-- Each part follows its index and ends at the limit. The last one looks at twice as many, since it
-- meets those of the first again: if they are fewer than the limit, the others are all there or enough.
SELECT least($5::int8,
       (SELECT count(*) FROM unnest($1::text[]) AS p(pool)
         CROSS JOIN LATERAL (
               SELECT FROM ready
                WHERE pool = p.pool AND lane = $2::int2 AND priority >= $3::int8 AND open_from IS NULL
                ORDER BY priority DESC, should_start_by, since, job_no
                LIMIT $5) AS higher)
     + (SELECT count(*) FROM unnest($1::text[]) AS p(pool)
         CROSS JOIN LATERAL (
               SELECT priority FROM ready
                WHERE pool = p.pool AND lane = $2 AND rise <= $4::int8 AND open_from IS NULL
                ORDER BY rise, should_start_by, since, job_no
                LIMIT 2 * $5) AS risen
         WHERE risen.priority < $3));
