-- Runs that failed for good, of jobs that want them listed. Written with the end of the run, by
-- failing runs of such jobs alone. It outlives the row of its run, so the error stands here as well.
CREATE TABLE dead_letter (
    job_no       INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    sequence     INTEGER NOT NULL,
    attempt      INTEGER NOT NULL,
    tenant_no    INTEGER NOT NULL,
    died_at      INTEGER NOT NULL,
    reason       INTEGER NOT NULL,
    status       INTEGER NOT NULL,
    error        TEXT,
    -- when it was taken up again, and the run that it became
    redriven_at  INTEGER,
    new_at       INTEGER,
    new_sequence INTEGER
) STRICT;
CREATE UNIQUE INDEX dead_letter_run ON dead_letter (job_no, scheduled_at, sequence);
CREATE INDEX dead_letter_place ON dead_letter (tenant_no, died_at, scheduled_at, job_no, sequence);
CREATE INDEX dead_letter_age ON dead_letter (died_at);

-- How many runs of a job failed in a row, of jobs that want to be paused after some. A good end
-- writes nothing here: `good_runs` is what the job's row said at the last failure, and where it says
-- another number by now, the row has ended. `is_due` jobs are to be paused.
CREATE TABLE failing (
    job_no       INTEGER PRIMARY KEY,
    runs         INTEGER NOT NULL,
    good_runs    INTEGER NOT NULL,
    is_due       INTEGER NOT NULL
) STRICT;
CREATE INDEX failing_due ON failing (job_no) WHERE is_due;

-- Why a job is paused, if whoever did that left a note.
ALTER TABLE job ADD COLUMN note TEXT;
