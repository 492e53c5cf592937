-- One look at a small table, whatever the planner thinks of it: IS TRUE keeps it from looking once
-- for each attempt of the batch.
DELETE FROM note
 WHERE ((scheduled_at, job_no, sequence, attempt) IN (
           SELECT scheduled_at, job_no, sequence, attempt
             FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[])
                  AS d(job_no, scheduled_at, sequence, attempt))) IS TRUE;
