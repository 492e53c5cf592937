INSERT INTO job_label (tenant_no, key, value, job_no)
SELECT $1, * FROM unnest($2::text[], $3::text[], $4::int8[])
    ON CONFLICT DO NOTHING
