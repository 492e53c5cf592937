SELECT name FROM job WHERE id = ?1;
