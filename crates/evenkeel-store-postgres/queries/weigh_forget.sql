-- Whoever is counting there needs the row.
DELETE FROM rhythm
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM rhythm WHERE jobs <= 0 LIMIT $1 FOR UPDATE SKIP LOCKED));
