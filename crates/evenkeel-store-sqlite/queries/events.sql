-- Events for listeners.

-- :name publish_name
SELECT name FROM job WHERE id = ?1
