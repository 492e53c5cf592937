-- $1 finds, $2 tells whether it is all in the title, $3 is what counts for the rank.
WITH found AS MATERIALIZED (
    SELECT p.page_no, t.words @@ $2::text::tsquery AS in_title,
           ts_rank_cd('{0.1, 0.1, 0.1, 1.0}', t.words, $3::text::tsquery, 1) AS score
      FROM page_text t JOIN page p USING (page_no) JOIN job j USING (job_no)
     WHERE t.words @@ $1::text::tsquery AND p.tenant_no = $4 AND j.standing <> 3
       AND ($5::text IS NULL OR starts_with(p.url, $5))
     LIMIT $6
), shown AS (
    SELECT * FROM found ORDER BY in_title DESC, score DESC, page_no OFFSET $7 LIMIT $8
)
SELECT n.total, p.page_no, p.id, j.id, p.url, p.title, p.changed_at, p.seen_at
  FROM (SELECT count(*) AS total FROM found) AS n
  LEFT JOIN shown s ON true
  LEFT JOIN page p USING (page_no)
  LEFT JOIN job j USING (job_no)
 ORDER BY s.in_title DESC, s.score DESC, s.page_no;
