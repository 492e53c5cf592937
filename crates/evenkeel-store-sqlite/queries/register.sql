-- Registering jobs.

-- :name register_changed_job
INSERT INTO changed_job (shard, job_no) VALUES (?1, ?2) ON CONFLICT DO NOTHING

-- :name register_count
UPDATE tenant SET job_count = job_count + ?2, next_job = next_job + ?2 WHERE tenant_no = ?1

-- :name register_find_dedup
SELECT d.job_no, d.taken_at, j.id, j.state, s.next_at, s.live,
       json_extract(j.definition, '$.schedule.kind') <> 'once' AS recurs,
       EXISTS (SELECT 1 FROM ready r WHERE r.job_no = d.job_no)
           OR EXISTS (SELECT 1 FROM delayed_attempt w WHERE w.job_no = d.job_no) AS waits
FROM dedup_key d JOIN job j ON j.job_no = d.job_no JOIN job_state s ON s.job_no = d.job_no
WHERE d.tenant_no = ?1 AND d.key = ?2

-- :name register_find_names (tenant_no, name, configuration, except_job_no)
SELECT id FROM job
WHERE tenant_no = :tenant_no AND name = :name AND configuration = :configuration
  AND state <> {job.deleted} AND job_no <> :except_job_no

-- :name register_delete_labels
DELETE FROM job_label WHERE job_no = ?1

-- :name register_job (
--   id, tenant_no, name, configuration, source_id, about, definition, created_at, executor, lane,
--   number, target_no)
INSERT INTO job (id, tenant_no, name, configuration, source_id, about, definition,
                 created_at, updated_at, executor, lane, number, target_no)
VALUES (:id, :tenant_no, :name, :configuration, :source_id, :about, :definition,
        :created_at, :created_at, :executor, :lane, :number, :target_no)

-- :name register_job_state (
--   job_no, tenant_no, shard, slot, placed_at, next_at, follows_end, load_profile, cost_us,
--   cost_stated)
INSERT INTO job_state (job_no, tenant_no, shard, slot, placed_at, next_at, follows_end,
                       load_profile, cost_us, cost_stated)
VALUES (:job_no, :tenant_no, :shard, :slot, :placed_at, :next_at, :follows_end, :load_profile,
        :cost_us, :cost_stated)

-- :name register_labels (tenant_no, key, value, job_no)
INSERT INTO job_label (tenant_no, key, value, job_no) VALUES (:tenant_no, :key, :value, :job_no)
ON CONFLICT DO NOTHING

-- :name register_number
SELECT next_job FROM tenant WHERE tenant_no = ?1

-- :name register_take_dedup (tenant_no, key, job_no, taken_at)
INSERT INTO dedup_key (tenant_no, key, job_no, taken_at) VALUES (:tenant_no, :key, :job_no, :taken_at)
ON CONFLICT (tenant_no, key) DO UPDATE SET job_no = excluded.job_no, taken_at = excluded.taken_at

-- :name register_details
UPDATE job SET executor = ?2, lane = ?3 WHERE job_no = ?1
