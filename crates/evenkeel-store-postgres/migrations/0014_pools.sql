-- Which pools a node takes runs of, as JSON: what waits in a pool that nobody serves can then be told
-- from what waits for a free worker. Nodes that joined before are taken to serve the usual one.
ALTER TABLE node ADD COLUMN pools text NOT NULL DEFAULT '["default"]';
