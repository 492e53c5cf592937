SELECT rowid FROM page_words WHERE page_words MATCH ?1 AND rowid <= ?2
