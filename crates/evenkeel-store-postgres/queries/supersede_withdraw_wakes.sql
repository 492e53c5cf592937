DELETE FROM wake
 WHERE job_no = ANY (ARRAY(
           SELECT s.job_no
             FROM unnest($1::int8[], $2::int4[], $3::int8[]) AS d(job_no, generation, due)
             JOIN job_state s USING (job_no)
            WHERE s.generation = d.generation AND s.next_at = d.due))
RETURNING scheduled_at, job_no, sequence, attempt, tenant_no;
