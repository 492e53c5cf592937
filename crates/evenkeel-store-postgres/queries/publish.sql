-- A row without a kind says that some before it were lost.
WITH newest AS (
    SELECT greatest(coalesce(max(no), 0), (extract(epoch FROM clock_timestamp()) * 1000000)::int8) AS no
    FROM event
)
INSERT INTO event (no, kind, tenant_no, job_id, scheduled_at, job_no, sequence, attempt, at, data,
                   job_name)
SELECT newest.no + new.place, new.kind, new.tenant_no, coalesce(new.job_id, numbered.id),
       new.scheduled_at, new.run_job_no, new.sequence, new.attempt, new.at, new.data,
       coalesce(numbered.name, told.name)
FROM newest
CROSS JOIN unnest(
    $1::int2[], $2::int4[], $3::uuid[], $4::int8[], $5::int8[], $6::int8[], $7::int4[], $8::int2[],
    $9::int8[], $10::text[]
) WITH ORDINALITY AS new (
    kind, tenant_no, job_id, by_no, scheduled_at, run_job_no, sequence, attempt, at, data, place
)
LEFT JOIN job AS numbered ON numbered.job_no = new.by_no
LEFT JOIN job AS told ON told.id = new.job_id;
