WITH given AS (
    SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::int4[], $6::text[], $7::int4[],
                         $8::bytea[], $9::int8[], $10::text[], $11::text[], $12::text[],
                         $13::text[], $14::text[], $15::text[], $16::text[])
        AS g(id, url, title, status, content_type, depth, content_hash, bytes, etag, last_modified,
             text, links, metadata, fields, words)
), changed AS (
    UPDATE page p
       SET url = g.url, title = g.title, status = g.status, content_type = g.content_type,
           depth = g.depth, content_hash = g.content_hash, bytes = g.bytes, changed_at = $1,
           seen_at = $1, etag = g.etag, last_modified = g.last_modified
      FROM given g WHERE p.id = g.id
 RETURNING p.id, p.page_no
)
UPDATE page_text t
   SET text = g.text, links = g.links, metadata = g.metadata, fields = g.fields,
       words = g.words::tsvector
  FROM changed c JOIN given g USING (id) WHERE t.page_no = c.page_no;
