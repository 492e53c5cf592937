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
            a_number_does_not_come_back,
            a_name_that_is_taken_changes_no_number,
            each_tenant_counts_for_itself,
            those_who_register_at_once_get_different_numbers,
            whoever_deletes_a_name_and_whoever_takes_it_both_get_on,
        }
    };
}
