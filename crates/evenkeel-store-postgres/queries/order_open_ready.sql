-- What somebody is claiming needs no opening: to wait for it with the job locked would be the wrong
-- order.
UPDATE ready
   SET open_from = $2, open_until = $3, forbidden_nodes = $4::text::jsonb
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM ready WHERE job_no = $1 FOR UPDATE SKIP LOCKED));
