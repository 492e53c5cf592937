//! The list of cases about runs that failed for good.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __dead_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => dead:
            a_letter_says_how_its_run_died,
            a_letter_is_of_the_last_attempt_and_found_by_any,
            ends_that_ask_for_none_leave_none,
            a_run_that_somebody_wanted_ended_is_not_dead,
            one_job_may_die_several_times_in_a_batch,
            the_list_is_newest_first_page_by_page,
            the_list_may_be_of_one_job_or_of_what_is_open,
            a_letter_that_is_taken_up_is_a_new_run,
            a_letter_is_taken_up_once,
            letters_of_one_job_are_taken_up_as_its_overlaps_allow,
            a_letter_of_a_job_that_is_over_is_not_taken_up,
            letters_are_thrown_away_one_by_one,
            letters_of_other_tenants_are_nowhere,
            a_letter_outlives_the_record_of_its_run,
            letters_go_with_a_purged_job,
            old_letters_and_too_many_are_forgotten_in_steps,
            of_many_who_take_up_a_letter_one_does,
            letters_are_there_after_a_restart,
        }
        $crate::__conformance_module! { $open => failing:
            a_job_is_told_when_as_many_runs_have_failed_as_it_names,
            a_good_run_begins_the_count_anew,
            attempts_that_are_retried_do_not_count,
            a_run_that_somebody_wanted_ended_does_not_count,
            an_end_that_was_recorded_before_does_not_count_again,
            a_pause_with_a_note_shows_it_until_the_job_goes_on,
            a_pause_or_resume_begins_the_count_anew,
            what_is_forgotten_is_told_no_more,
            a_job_that_is_over_counts_no_failures,
        }
    };
}
