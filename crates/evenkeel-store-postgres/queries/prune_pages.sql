WITH gone AS (
    DELETE FROM page WHERE id = ANY($1) AND job_no = $2 RETURNING page_no, bytes
), texts AS (
    DELETE FROM page_text t USING gone g WHERE t.page_no = g.page_no
)
SELECT count(*), coalesce(sum(bytes), 0)::int8 FROM gone;
