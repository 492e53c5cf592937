UPDATE job_state
   SET deleted = true, active = false, generation = generation + 1, next_at = NULL, slot = NULL,
       watched = false
 WHERE job_no = $1
RETURNING live, head_at, head_sequence;
