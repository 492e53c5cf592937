-- From the batch to the rows, whatever the planner thinks of a table that is empty most of the time:
-- OFFSET 0 keeps the order of the joins. A plan made while it was empty reads all of it for each
-- attempt, and is not made anew when it has filled up.
DELETE FROM note
 WHERE ctid = ANY (ARRAY(
           SELECT n.ctid
             FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[])
                  AS d(job_no, scheduled_at, sequence, attempt)
            CROSS JOIN LATERAL (
                  SELECT ctid FROM note n
                   WHERE n.scheduled_at = d.scheduled_at AND n.job_no = d.job_no
                     AND n.sequence = d.sequence AND n.attempt = d.attempt
                  OFFSET 0) AS n));
