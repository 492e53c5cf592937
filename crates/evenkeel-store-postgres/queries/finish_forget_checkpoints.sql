-- As in finish_forget_notes.
DELETE FROM checkpoint
 WHERE ((scheduled_at, job_no, sequence) IN (
           SELECT scheduled_at, job_no, sequence
             FROM unnest($1::int8[], $2::int8[], $3::int4[])
                  AS d(job_no, scheduled_at, sequence))) IS TRUE;
