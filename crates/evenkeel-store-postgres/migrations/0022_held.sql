-- Jobs in ERROR that only a blackout holds (reason 9) are counted, so that alerts can leave them out.
CREATE INDEX watch_held ON watch (tenant_no) WHERE reason = 9;
