UPDATE page SET seen_at = ?2, etag = ?3, last_modified = ?4 WHERE page_no = ?1
