UPDATE api_key SET last_used_at = greatest(last_used_at, $2)
WHERE id = ANY ($1)
