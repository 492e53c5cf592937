-- Jobs that run once and failed are in ERROR for a day after their end. Those that were judged before that
-- rule was there (reason 8) were never to be looked at again: they are judged anew.
UPDATE watch SET judge_at = 0 WHERE reason = 8;
