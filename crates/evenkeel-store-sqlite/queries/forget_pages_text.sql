DELETE FROM page_text WHERE page_no = ?1
