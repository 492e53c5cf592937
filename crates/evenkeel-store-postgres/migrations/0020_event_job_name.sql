-- What the job of an event was called when it was written down, so that readers need not look it up.
ALTER TABLE event ADD COLUMN job_name text;
