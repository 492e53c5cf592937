DELETE FROM ready WHERE job_no = ANY ($1::int8[])
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no, fence, crashes, prev_at,
          prev_sequence;
