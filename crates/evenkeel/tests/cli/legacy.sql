-- The predecessor's table, with some rows.
CREATE SCHEMA legacy_schema;
CREATE TABLE legacy_schema.jobs (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    source_id text,
    source_name text,
    url text NOT NULL,
    status varchar(50) NOT NULL DEFAULT 'pending',
    created_at timestamptz DEFAULT now(),
    updated_at timestamptz DEFAULT now(),
    interval_minutes integer,
    interval_type varchar(20),
    next_run_at timestamptz,
    is_paused boolean DEFAULT false,
    paused_at timestamptz,
    cancelled_at timestamptz,
    max_retries integer DEFAULT 3,
    retry_backoff_seconds integer DEFAULT 60,
    current_retry_count integer DEFAULT 0,
    lock_token uuid,
    lock_acquired_at timestamptz,
    metadata jsonb DEFAULT '{}'::jsonb,
    schedule_time text,
    schedule_enabled boolean DEFAULT false
);
INSERT INTO legacy_schema.jobs (source_name, url, status, schedule_time, schedule_enabled)
SELECT 'site-' || n, 'https://example.com/' || n, 'scheduled', n % 60 || ' * * * *', true
FROM generate_series(1, 2400) n;
INSERT INTO legacy_schema.jobs
    (source_name, url, status, schedule_time, schedule_enabled, interval_minutes, interval_type, is_paused)
VALUES
    ('every-six', 'https://example.com/a', 'scheduled', NULL, true, 6, 'hours', false),
    ('halted', 'https://example.com/b', 'scheduled', '0 0 * * *', true, NULL, NULL, true),
    ('weekdays', 'https://example.com/c', 'scheduled', '0 9 * * 1-5', true, NULL, NULL, false),
    ('broken', 'https://example.com/d', 'scheduled', '0 0 31 2 *', true, NULL, NULL, false),
    ('waiting', 'https://example.com/e', 'pending', NULL, false, NULL, NULL, false),
    ('done', 'https://example.com/f', 'completed', NULL, false, NULL, NULL, false);
