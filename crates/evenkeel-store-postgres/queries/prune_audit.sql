-- Entries are written about in the order of time, so the old ones are the first: no more than these
-- are looked at, and no index is needed.
DELETE FROM audit
WHERE no IN (SELECT no FROM audit ORDER BY no LIMIT $2) AND at < $1
