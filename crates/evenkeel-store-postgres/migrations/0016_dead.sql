-- Runs that failed for good, of jobs that want them listed. Written with the end of the run, by
-- failing runs of such jobs alone. It outlives the row of its run, so the error stands here as well.
CREATE TABLE dead_letter (
    job_no       int8 NOT NULL,
    scheduled_at int8 NOT NULL,
    sequence     int4 NOT NULL,
    attempt      int2 NOT NULL,
    tenant_no    int4 NOT NULL,
    died_at      int8 NOT NULL,
    reason       int2 NOT NULL,
    status       int2 NOT NULL,
    error        text,
    -- when it was taken up again, and the run that it became
    redriven_at  int8,
    new_at       int8,
    new_sequence int4,
    PRIMARY KEY (job_no, scheduled_at, sequence)
);
CREATE INDEX dead_letter_place ON dead_letter (tenant_no, died_at, scheduled_at, job_no, sequence);
CREATE INDEX dead_letter_age ON dead_letter (died_at);

-- How many runs of a job failed in a row, of jobs that want to be paused after some. A good end
-- writes nothing here: `good_runs` is what the job's row said at the last failure, and where it says
-- another number by now, the row has ended. `is_due` jobs are to be paused.
CREATE TABLE failing (
    job_no       int8 PRIMARY KEY,
    runs         int4 NOT NULL,
    good_runs    int4 NOT NULL,
    is_due       bool NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX failing_due ON failing (job_no) WHERE is_due;

-- Why a job is paused, if whoever did that left a note.
ALTER TABLE job ADD COLUMN note text;
