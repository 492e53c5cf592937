-- What running attempts say of themselves. A row goes with its attempt; one of an older fence is
-- as good as none. With rowids: a log is long, and a long row is slow in an index.
CREATE TABLE note (
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    saved_at    INTEGER NOT NULL,
    progress    TEXT,
    log         TEXT,
    PRIMARY KEY (scheduled_at, job_no, sequence, attempt)
) STRICT;

-- What others say to the nodes of running attempts; they delete it as they read.
CREATE TABLE letter (
    letter_no   INTEGER PRIMARY KEY,
    node_no     INTEGER NOT NULL,
    scheduled_at INTEGER NOT NULL,
    job_no      INTEGER NOT NULL,
    sequence    INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    fence       INTEGER NOT NULL,
    word        INTEGER NOT NULL,
    UNIQUE (node_no, scheduled_at, job_no, sequence, attempt, fence, word)
) STRICT;
