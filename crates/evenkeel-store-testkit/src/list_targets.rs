//! The list of cases about numbers and targets.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __target_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => numbers:
            jobs_are_counted_from_one_in_the_order_given,
            a_number_is_shown_wherever_the_job_is,
            a_number_leads_to_its_job,
            a_name_leads_to_the_jobs_that_have_it,
            a_number_does_not_come_back,
            a_name_that_is_taken_changes_no_number,
            each_tenant_counts_for_itself,
            those_who_register_at_once_get_different_numbers,
            whoever_deletes_a_name_and_whoever_takes_it_both_get_on,
        }
        $crate::__conformance_module! { $open => targets:
            a_new_target_reads_back_as_it_was_given,
            targets_are_counted_from_one,
            a_number_that_was_chosen_is_passed_over,
            no_choice_uses_the_numbers_up,
            addresses_are_told_alone,
            a_number_or_source_that_is_there_is_told,
            targets_are_listed_by_number,
            a_change_says_all_anew,
            a_change_of_another_generation_is_not_made,
            a_source_belongs_to_one_target,
            a_job_names_its_target,
            a_change_of_a_job_may_name_another_target,
            a_target_that_jobs_name_stays,
            jobs_are_detached_if_that_is_wanted,
            deleted_jobs_do_not_keep_a_target,
            the_last_success_is_that_of_its_jobs,
            the_success_of_a_deleted_job_counts,
            a_success_stays_with_the_target_it_was_for,
            a_job_without_executor_runs_for_no_target,
            the_jobs_of_a_target_come_in_pages,
            tenants_do_not_see_each_others,
            a_target_without_success_since_is_stale,
            a_target_that_never_had_any_counts_from_its_making,
            a_stale_target_names_the_job_to_run,
            stale_targets_are_looked_for_in_steps,
            of_many_who_make_one_at_once_one_does,
        }
    };
}
