-- Nobody would read one to a node that is gone.
INSERT INTO letter (node_no, scheduled_at, job_no, sequence, attempt, fence, word)
SELECT node_no, ?2, ?3, ?4, ?5, ?6, ?7 FROM node WHERE node_no = ?1 AND state <> 3
ON CONFLICT DO NOTHING
