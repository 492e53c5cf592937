j.standing = 0 AND s.live = 0 AND s.next_at <= ?21
     AND instr(j.definition, '"blackout_periods"') > 0
