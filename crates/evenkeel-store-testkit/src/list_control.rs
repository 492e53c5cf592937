//! The list of cases about what people ask of jobs: one list would be too long.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __control_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => order_races:
            a_pause_and_a_fire_agree_on_what_runs,
            what_a_pause_withdraws_nobody_claims,
            a_pause_and_an_end_leave_no_retry,
            a_pause_and_a_return_leave_nothing_in_the_queue,
            a_cancel_and_an_end_leave_no_retry,
            a_cancel_and_a_return_leave_nothing_in_the_queue,
            a_run_asked_for_is_withdrawn_by_the_pause_or_comes_after_it,
            of_equal_orders_at_once_one_is_obeyed,
            of_orders_for_one_generation_one_is_obeyed,
            a_pause_holds_against_all_else,
            a_cancel_holds_against_all_else,
            a_deletion_holds_against_all_else,
            batches_of_orders_at_once_end_without_harm,
        }
        $crate::__conformance_module! { $open => orders:
            each_is_answered_in_its_place_and_spoils_no_other,
            of_two_that_want_one_name_the_first_gets_it,
            each_that_is_obeyed_raises_the_generation,
            each_may_ask_for_the_generation,
            each_may_ask_for_how_often_it_was_fired,
            what_the_state_forbids_is_told_before_another_generation,
            jobs_of_another_tenant_are_not_found,
            a_thousand_are_obeyed_at_once,
            those_of_many_that_exist_are_read,
        }
        $crate::__conformance_module! { $open => pause:
            a_paused_job_says_so_and_since_when,
            it_does_not_fire,
            what_waits_in_the_queue_is_recorded_as_cancelled,
            retries_and_triggers_that_wait_are_recorded_as_cancelled,
            what_runs_goes_on_to_its_end_and_is_told,
            what_runs_is_not_tried_again,
            a_clock_that_was_set_back_lets_nothing_escape_a_pause,
            an_attempt_that_goes_back_is_cancelled_instead,
            a_run_asked_for_while_it_is_paused_goes_all_the_way,
            a_run_asked_for_at_the_moment_of_the_pause_is_for_the_one_after,
            a_paused_job_can_be_changed_but_gets_no_next_time,
            it_cannot_be_paused_twice,
            a_resumed_job_goes_on_from_the_given_time,
            a_time_that_was_fired_is_not_resumed_at,
            a_job_may_be_resumed_without_a_next_time,
            only_a_paused_job_can_be_resumed,
            what_still_runs_is_told_and_tried_again_once_it_is_resumed,
            a_watched_job_is_judged_again_as_it_is_paused,
            a_paused_job_may_be_triggered_unless_a_run_goes_on,
        }
        $crate::__conformance_module! { $open => purge:
            all_of_a_deleted_job_is_forgotten_in_steps,
            a_run_is_forgotten_whole,
            what_still_runs_is_left,
            what_retention_keeps_is_forgotten_too,
            only_ones_own_deleted_jobs_are_purged,
        }
        $crate::__conformance_module! { $open => retry:
            a_failed_run_is_tried_again_as_a_run_of_its_own,
            a_job_that_its_failures_stopped_goes_on,
            a_job_that_has_a_next_time_keeps_it,
            a_job_whose_last_run_did_not_fail_is_not_tried_again,
            a_number_that_is_taken_gives_way_to_the_next,
        }
        $crate::__conformance_module! { $open => shown:
            a_job_is_the_same_however_it_is_asked_for,
            the_attempt_that_runs_is_named,
            retries_are_counted_until_the_chain_is_over,
            good_and_bad_ends_are_counted,
            the_last_error_is_shown_until_a_run_ends_otherwise,
            a_long_error_is_cut_where_a_job_is_shown,
            what_is_withdrawn_is_how_the_last_one_ended,
        }
        $crate::__conformance_module! { $open => stop:
            a_cancelled_job_is_over_and_still_there,
            what_waits_is_recorded_as_cancelled,
            what_runs_is_asked_to_end,
            nothing_of_it_is_tried_again,
            it_obeys_nothing_but_its_deletion,
            a_paused_job_can_be_cancelled,
            it_leaves_the_watch_list_and_stays_away,
        }
    };
}
