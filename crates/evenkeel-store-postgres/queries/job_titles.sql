SELECT job.id, job.name, job.about::json ->> 'source_name'
FROM unnest($1::int8[]) WITH ORDINALITY AS wanted (job_no, place)
LEFT JOIN job USING (job_no)
ORDER BY wanted.place;
