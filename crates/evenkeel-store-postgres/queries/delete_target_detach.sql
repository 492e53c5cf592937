-- Whoever shows one of them to somebody shows another version from then on, and their schedulers are
-- told, who hold the old one.
WITH named AS MATERIALIZED (
    SELECT job_no FROM job WHERE tenant_no = $1 AND target_no = $2 ORDER BY job_no FOR UPDATE
), states AS MATERIALIZED (
    SELECT s.job_no FROM job_state s JOIN named USING (job_no) ORDER BY s.job_no FOR NO KEY UPDATE OF s
), raised AS (
    UPDATE job_state s SET generation = s.generation + 1
      FROM states WHERE s.job_no = states.job_no
 RETURNING s.job_no, s.shard, s.slot
), told AS (
    INSERT INTO changed_job (shard, job_no)
    SELECT shard, job_no FROM raised WHERE slot IS NOT NULL
        ON CONFLICT (shard, job_no) DO UPDATE SET job_no = excluded.job_no
)
UPDATE job j SET target_no = NULL, target_since = NULL FROM named WHERE j.job_no = named.job_no;
