-- Without another `about`, what people know of the job stays. A note stays as long as it stands so.
UPDATE job j
   SET standing = d.standing, updated_at = $1,
       note = CASE WHEN j.standing = d.standing THEN j.note ELSE d.note END,
       name = CASE WHEN d.about IS NULL THEN j.name ELSE d.name END,
       configuration = CASE WHEN d.about IS NULL THEN j.configuration ELSE d.configuration END,
       source_id = CASE WHEN d.about IS NULL THEN j.source_id ELSE d.source_id END,
       target_no = CASE WHEN d.standing = 3 THEN NULL WHEN d.about IS NULL THEN j.target_no
                        ELSE d.target_no END,
       target_since = CASE WHEN d.about IS NULL OR d.target_no IS NOT DISTINCT FROM j.target_no
                           THEN j.target_since ELSE $1 END,
       about = coalesce(d.about, j.about), definition = coalesce(d.definition, j.definition)
  FROM unnest($2::int8[], $3::int2[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
              $9::int8[], $10::text[])
       AS d(job_no, standing, about, name, configuration, source_id, definition, target_no, note)
 WHERE j.job_no = d.job_no;
