SELECT count(*) FROM (
    SELECT 1 FROM run WHERE scheduled_at >= (SELECT min(oldest_open) FROM node WHERE state <> 3)
    LIMIT 10001)
