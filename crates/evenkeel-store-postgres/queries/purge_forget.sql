WITH d AS MATERIALIZED (
    SELECT * FROM unnest($2::int8[], $3::int4[]) AS d(at, sequence)
), gone AS (
    DELETE FROM run r USING d
     WHERE r.scheduled_at = d.at AND r.job_no = $1 AND r.sequence = d.sequence
 RETURNING r.job_no
), unsaid AS (
    DELETE FROM note n USING d
     WHERE n.scheduled_at = d.at AND n.job_no = $1 AND n.sequence = d.sequence
), unsaved AS (
    DELETE FROM checkpoint c USING d
     WHERE c.scheduled_at = d.at AND c.job_no = $1 AND c.sequence = d.sequence
)
SELECT count(*) FROM gone;
