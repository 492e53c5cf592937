-- As in finish_forget_notes.
DELETE FROM checkpoint
 WHERE ctid = ANY (ARRAY(
           SELECT c.ctid
             FROM unnest($1::int8[], $2::int8[], $3::int4[]) AS d(job_no, scheduled_at, sequence)
            CROSS JOIN LATERAL (
                  SELECT ctid FROM checkpoint c
                   WHERE c.scheduled_at = d.scheduled_at AND c.job_no = d.job_no
                     AND c.sequence = d.sequence
                  OFFSET 0) AS c));
