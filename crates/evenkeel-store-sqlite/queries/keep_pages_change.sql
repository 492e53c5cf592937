UPDATE page SET url = ?2, title = ?3, status = ?4, content_type = ?5, depth = ?6,
                content_hash = ?7, bytes = ?8, changed_at = ?9, seen_at = ?9, etag = ?10,
                last_modified = ?11
WHERE page_no = ?1
