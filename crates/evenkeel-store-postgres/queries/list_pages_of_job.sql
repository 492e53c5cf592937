-- A job's pages are its tenant's. They are asked for as a range of (job_no, page_no), in that
-- order, so that page_job is the one index that serves: with job_no = $1 the planner may walk along
-- the pages of all jobs by their number, and a small job's come late.
SELECT p.page_no, p.id, j.id, p.url, p.title, p.changed_at, p.seen_at, left(t.text, $6)
  FROM page p JOIN page_text t USING (page_no)
 CROSS JOIN (SELECT id FROM job WHERE job_no = $1 AND standing <> 3) AS j
 WHERE (p.job_no, p.page_no) > ($1, $2) AND p.job_no <= $1
   AND ($3::text IS NULL OR starts_with(p.url, $3))
 ORDER BY p.job_no, p.page_no OFFSET $4 LIMIT $5;
