DELETE FROM dead_letter
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM dead_letter WHERE died_at < $1
                          ORDER BY died_at LIMIT $2 FOR UPDATE SKIP LOCKED));
