SELECT page_no, left(text, $2) FROM page_text WHERE page_no = ANY($1);
