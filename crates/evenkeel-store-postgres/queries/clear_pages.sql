WITH gone AS (
    DELETE FROM page
     WHERE page_no IN (SELECT page_no FROM page WHERE job_no = $1 ORDER BY page_no LIMIT $2)
 RETURNING page_no, bytes
), texts AS (
    DELETE FROM page_text t USING gone g WHERE t.page_no = g.page_no
)
SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM gone;
