SELECT current_setting('fsync') = 'on', current_setting('synchronous_commit'),
       current_setting('full_page_writes') = 'on';
