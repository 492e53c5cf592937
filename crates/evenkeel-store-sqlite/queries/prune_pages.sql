DELETE FROM page WHERE page_no = ?1 RETURNING bytes
