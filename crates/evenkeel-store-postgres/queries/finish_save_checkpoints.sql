INSERT INTO checkpoint (scheduled_at, job_no, sequence, saved_at, data)
SELECT scheduled_at, job_no, sequence, saved_at, data
  FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int8[], $5::bytea[])
       AS d(job_no, scheduled_at, sequence, saved_at, data)
    ON CONFLICT (scheduled_at, job_no, sequence) DO UPDATE
   SET saved_at = excluded.saved_at, data = excluded.data;
