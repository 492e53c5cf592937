-- Who has got another priority meanwhile has another place already, and is looked at again.
WITH d AS MATERIALIZED (
    SELECT *
      FROM unnest($1::int8[], $2::int8[], $3::int4[], $4::int2[], $5::int8[], $6::int8[])
           AS d(job_no, scheduled_at, sequence, attempt, before, rise)
), locked AS MATERIALIZED (
    SELECT r.ctid AS place, d.rise
      FROM d JOIN ready r USING (scheduled_at, job_no, sequence, attempt)
     WHERE r.rise = d.before
       FOR UPDATE OF r SKIP LOCKED
)
UPDATE ready r SET rise = l.rise FROM locked l WHERE r.ctid = l.place;
