//! The list of cases about runs that somebody says the end of.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __settle_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => settle:
            what_runs_ends_as_said_and_its_worker_is_refused,
            the_node_that_ran_it_gets_a_letter,
            what_waits_in_the_queue_ends_as_said,
            a_retry_that_waits_ends_as_said,
            a_trigger_that_waits_ends_as_said,
            an_attempt_back_in_the_queue_ends_as_said,
            what_is_no_longer_where_it_was_seen_is_left_alone,
            what_goes_back_is_claimed_anew,
            what_waits_need_not_go_back,
            no_retry_and_no_letter_of_the_dead_follows,
            an_average_stays_as_it_was,
            what_is_only_said_makes_no_average,
            a_job_whose_times_follow_its_ends_goes_on,
            the_scheduler_is_told,
            what_it_said_while_it_ran_is_forgotten,
            runs_of_other_tenants_are_left_alone,
        }
        $crate::__conformance_module! { $open => settle_back:
            what_waits_and_runs_goes_on_oldest_first,
            however_much_goes_on_is_told,
            what_runs_for_long_goes_on_though_what_came_after_is_forgotten,
            what_goes_on_is_told_with_the_priority_it_was_given,
            a_run_of_a_cancelled_job_does_not_go_back,
            a_run_from_before_a_pause_does_not_go_back,
            a_run_that_is_asked_to_end_does_not_go_back,
            a_run_whose_key_another_job_has_does_not_go_back,
            a_run_whose_job_has_its_key_goes_back,
            a_run_may_be_asked_for_only_if_nothing_goes_on,
        }
        $crate::__conformance_module! { $open => settle_races:
            of_an_end_and_a_word_about_it_one_counts,
            of_a_claim_and_a_word_about_it_one_is_first,
            of_a_hand_back_and_a_word_about_it_one_counts,
            of_a_cancel_and_a_word_about_it_none_is_lost,
            of_a_pause_and_a_word_that_sends_it_back_one_is_first,
            of_many_who_ask_an_idle_job_to_run_one_is_first,
        }
    };
}
