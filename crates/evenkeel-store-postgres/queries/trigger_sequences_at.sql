WITH d AS MATERIALIZED (
    SELECT * FROM unnest($1::int8[], $2::int8[]) AS d(scheduled_at, job_no)
)
SELECT job_no, sequence FROM d JOIN run USING (scheduled_at, job_no)
 UNION
SELECT job_no, sequence FROM d JOIN ready USING (scheduled_at, job_no)
 UNION
SELECT job_no, sequence FROM d JOIN wake USING (scheduled_at, job_no);
