//! The list of cases about jobs that are not to be there twice.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __dedup_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => dedup:
            a_second_job_with_a_key_is_the_first,
            a_job_without_a_key_is_never_kept_out,
            twins_in_a_batch_are_found_and_the_first_is_made,
            a_key_is_told_before_a_name,
            a_key_is_of_one_executor_and_one_tenant,
            a_one_off_job_counts_until_it_is_claimed,
            one_that_runs_counts_if_the_newcomer_says_so,
            within_a_time_only_the_moment_counts,
            a_retry_that_waits_counts_and_is_never_refused,
            a_recurring_job_counts_until_it_is_over,
            a_deleted_job_keeps_nobody_out,
            a_paused_one_off_job_gives_way_and_comes_back_if_it_can,
            a_failed_run_is_not_tried_again_beside_another,
            a_failed_run_may_be_tried_again_within_its_own_time,
            of_orders_in_a_batch_the_first_gets_the_key,
            a_changed_key_is_taken_and_the_old_one_let_go,
            another_executor_is_another_key,
            a_deleted_job_leaves_no_key_behind,
            keys_that_keep_nobody_out_are_forgotten_in_steps,
            keys_are_held_after_a_restart,
        }
        $crate::__conformance_module! { $open => dedup_runs:
            a_job_that_gets_a_key_has_it_also_for_triggers,
            a_recurring_job_may_be_triggered_between_its_times_once,
            a_time_that_is_due_is_the_run_that_was_asked_for,
            a_run_that_goes_on_is_the_one_that_was_asked_for,
            without_the_scope_of_runs_one_that_goes_on_makes_the_job_busy,
            within_a_time_the_last_run_is_the_one_that_was_asked_for,
            another_holder_keeps_a_trigger_out,
            a_paused_holder_may_have_nothing_to_show,
            a_letter_is_not_taken_up_beside_another,
            of_two_letters_of_a_job_one_is_taken_up,
        }
        $crate::__conformance_module! { $open => dedup_races:
            of_thousands_at_once_each_key_is_made_once,
            whoever_takes_keys_at_once_gets_on_and_one_is_pending,
        }
    };
}
