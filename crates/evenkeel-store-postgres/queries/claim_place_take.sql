-- One that was handed back may have its place still.
INSERT INTO place (key, scheduled_at, job_no, sequence, attempt)
SELECT * FROM unnest($1::bytea[], $2::int8[], $3::int8[], $4::int4[], $5::int2[])
    ON CONFLICT DO NOTHING;
