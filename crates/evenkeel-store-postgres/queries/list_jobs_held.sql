j.standing = 0 AND s.live = 0 AND s.next_at <= {now}
     AND strpos(j.definition, '"blackout_periods"') > 0
