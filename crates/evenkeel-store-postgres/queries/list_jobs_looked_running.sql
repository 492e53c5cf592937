SELECT count(*)
  FROM (SELECT FROM run WHERE scheduled_at >= (SELECT min(oldest_open) FROM node WHERE state <> 3)
         ORDER BY scheduled_at DESC LIMIT 10001) AS r
