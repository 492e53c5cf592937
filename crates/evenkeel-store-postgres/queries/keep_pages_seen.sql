UPDATE page p SET seen_at = $1, etag = g.etag, last_modified = g.last_modified
  FROM unnest($2::uuid[], $3::text[], $4::text[]) AS g(id, etag, last_modified)
 WHERE p.id = g.id;
