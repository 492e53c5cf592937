-- Found once and deleted by their place, as in look_ahead_changed.
WITH taken AS (
    DELETE FROM letter
     WHERE ctid = ANY (ARRAY(SELECT ctid FROM letter WHERE node_no = $1 ORDER BY letter_no
                              LIMIT $2 FOR UPDATE SKIP LOCKED))
 RETURNING *
)
SELECT scheduled_at, job_no, sequence, attempt, fence, word FROM taken ORDER BY letter_no;
