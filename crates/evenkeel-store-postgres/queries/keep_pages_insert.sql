WITH given AS (
    SELECT * FROM unnest($4::uuid[], $5::text[], $6::text[], $7::int4[], $8::text[], $9::int4[],
                         $10::bytea[], $11::int8[], $12::text[], $13::text[], $14::text[],
                         $15::text[], $16::text[], $17::text[], $18::text[]) WITH ORDINALITY
        AS g(id, url, title, status, content_type, depth, content_hash, bytes, etag, last_modified,
             text, links, metadata, fields, words, nth)
), kept AS (
    INSERT INTO page (id, job_no, tenant_no, url, title, status, content_type, depth, content_hash,
                      bytes, first_seen_at, changed_at, seen_at, etag, last_modified)
    SELECT id, $1, $2, url, title, status, content_type, depth, content_hash, bytes, $3, $3, $3,
           etag, last_modified
      FROM given ORDER BY nth
 RETURNING id, page_no
)
INSERT INTO page_text (page_no, text, links, metadata, fields, words)
SELECT k.page_no, g.text, g.links, g.metadata, g.fields, g.words::tsvector
  FROM kept k JOIN given g USING (id);
