INSERT INTO page_shelf (job_no, bytes, pages) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes, pages = pages + excluded.pages
