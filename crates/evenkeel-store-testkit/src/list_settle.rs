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
            a_run_of_a_stopped_job_does_not_go_back,
            no_retry_and_no_letter_of_the_dead_follows,
            an_average_stays_as_it_was,
            a_job_whose_times_follow_its_ends_goes_on,
            the_scheduler_is_told,
            what_it_said_while_it_ran_is_forgotten,
            runs_of_other_tenants_are_left_alone,
            of_an_end_and_a_word_about_it_one_counts,
            of_a_claim_and_a_word_about_it_one_is_first,
        }
    };
}
