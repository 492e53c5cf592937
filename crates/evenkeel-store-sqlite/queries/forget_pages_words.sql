DELETE FROM page_words WHERE rowid = ?1
