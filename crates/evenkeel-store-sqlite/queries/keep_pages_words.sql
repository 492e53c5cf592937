REPLACE INTO page_words (rowid, title, text, home) VALUES (?1, ?2, ?3, ?4)
