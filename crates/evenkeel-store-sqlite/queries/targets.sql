-- Targets.

-- The last success of a target is the later of its stored success and the successes of its jobs
-- since they got the target.
-- :fragment target_last_success
nullif(max(coalesce(t.last_success_at, 0), coalesce((
           SELECT max(s.last_good_end_at)
           FROM job j JOIN job_state s ON s.job_no = j.job_no
           WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number
             AND s.last_good_end_at > coalesce(j.target_since, 0)), 0)), 0) AS last_success_at

-- :fragment target_row
SELECT t.number, t.source_id, t.name, t.url, t.generation, t.created_at, t.updated_at,
       {target_last_success},
       (SELECT count(*) FROM job j
         WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number) AS jobs

-- :fragment active_job_of_target
j.tenant_no = t.tenant_no AND j.target_no = t.number AND j.state = {job.active}
           AND j.executor <> 'none'

-- :name change_target (tenant_no, number, source_id, name, url, updated_at)
UPDATE target
SET source_id = :source_id, name = :name, url = :url, updated_at = :updated_at,
    generation = generation + 1
WHERE tenant_no = :tenant_no AND number = :number

-- :name change_target_source
SELECT number FROM target WHERE tenant_no = ?1 AND source_id = ?2 AND number <> ?3

-- :name create_target (tenant_no, number, source_id, name, url, created_at)
INSERT INTO target (tenant_no, number, source_id, name, url, created_at, updated_at)
VALUES (:tenant_no, :number, :source_id, :name, :url, :created_at, :created_at)

-- :name delete_target
DELETE FROM target WHERE tenant_no = ?1 AND number = ?2

-- :name delete_target_count
UPDATE tenant SET targets = targets - 1 WHERE tenant_no = ?1

-- :name delete_target_detach
UPDATE job SET target_no = NULL, target_since = NULL WHERE tenant_no = ?1 AND target_no = ?2

-- :name delete_target_raise
UPDATE job_state SET generation = generation + 1
WHERE job_no IN (SELECT job_no FROM job WHERE tenant_no = ?1 AND target_no = ?2)

-- :name delete_target_notify
INSERT INTO changed_job (shard, job_no)
SELECT s.shard, s.job_no FROM job j JOIN job_state s ON s.job_no = j.job_no
WHERE j.tenant_no = ?1 AND j.target_no = ?2 AND s.slot IS NOT NULL
ON CONFLICT DO NOTHING

-- :name get_targets
{target_row}
FROM target t WHERE t.tenant_no = ?1 AND t.number = ?2

-- :name jobs_of_target (tenant_no, target_no, after_job_no, limit)
SELECT job_no, id FROM job
WHERE tenant_no = :tenant_no AND target_no = :target_no AND job_no > :after_job_no
ORDER BY job_no LIMIT :limit

-- :name list_targets (tenant_no, after_number, limit, offset)
{target_row}
FROM target t WHERE t.tenant_no = :tenant_no AND t.number > :after_number
ORDER BY t.number LIMIT :limit OFFSET :offset

-- :name list_targets_count
SELECT targets FROM tenant WHERE tenant_no = ?1

-- :name create_target_count
UPDATE tenant SET targets = targets + 1, next_target = coalesce(?2, next_target) WHERE tenant_no = ?1

-- :name create_target_find
SELECT number FROM target WHERE tenant_no = ?1 AND number = ?2
UNION ALL
SELECT number FROM target WHERE tenant_no = ?1 AND source_id = ?3
LIMIT 1

-- :name create_target_free
-- The lowest unused number that is at least ?2.
SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM target WHERE tenant_no = ?1 AND number = ?2) THEN ?2
       ELSE (SELECT t.number + 1 FROM target t
             WHERE t.tenant_no = ?1 AND t.number >= ?2
               AND NOT EXISTS (SELECT 1 FROM target n WHERE n.tenant_no = ?1 AND n.number = t.number + 1)
             ORDER BY t.number LIMIT 1) END

-- :name create_target_number
SELECT next_target FROM tenant WHERE tenant_no = ?1

-- :name stale_targets
SELECT t.tenant_no, t.number, t.created_at,
       {target_last_success},
       (SELECT j.id FROM job j
         WHERE {active_job_of_target}
         ORDER BY j.job_no LIMIT 1) AS job,
       (SELECT min(s.next_at)
          FROM job j JOIN job_state s ON s.job_no = j.job_no
         WHERE {active_job_of_target}) AS next_at,
       EXISTS (SELECT 1 FROM job j JOIN job_state s ON s.job_no = j.job_no
                WHERE j.tenant_no = t.tenant_no AND j.target_no = t.number AND s.live > 0) AS is_live
FROM target t WHERE (t.tenant_no, t.number) > (?1, ?2) ORDER BY t.tenant_no, t.number LIMIT ?3

-- :name target_urls
SELECT url FROM target WHERE tenant_no = ?1 AND number = ?2
