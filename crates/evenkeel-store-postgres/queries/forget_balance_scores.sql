DELETE FROM balance_score
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM balance_score WHERE hour < $1 LIMIT $2));
