REPLACE INTO page_text (page_no, text, links, metadata, fields) VALUES (?1, ?2, ?3, ?4, ?5)
