-- In the order of the key, so that two nodes wait for each other only one way.
INSERT INTO failure AS f (tenant_no, fingerprint, count, first_at, last_at, scheduled_at, job_no,
                          sequence, attempt, error)
SELECT tenant_no, fingerprint, count, $1::int8, last_at, scheduled_at, job_no, sequence, attempt, error
  FROM unnest($2::int4[], $3::int8[], $4::int8[], $5::int8[], $6::int8[], $7::int8[], $8::int4[],
              $9::int2[], $10::text[])
       AS d(tenant_no, fingerprint, count, last_at, scheduled_at, job_no, sequence, attempt, error)
 ORDER BY tenant_no, fingerprint
    ON CONFLICT (tenant_no, fingerprint) DO UPDATE
   SET count = f.count + excluded.count, last_at = greatest(f.last_at, excluded.last_at),
       scheduled_at = CASE WHEN excluded.last_at >= f.last_at THEN excluded.scheduled_at
                           ELSE f.scheduled_at END,
       job_no = CASE WHEN excluded.last_at >= f.last_at THEN excluded.job_no ELSE f.job_no END,
       sequence = CASE WHEN excluded.last_at >= f.last_at THEN excluded.sequence ELSE f.sequence END,
       attempt = CASE WHEN excluded.last_at >= f.last_at THEN excluded.attempt ELSE f.attempt END,
       error = CASE WHEN excluded.last_at >= f.last_at THEN excluded.error ELSE f.error END;
