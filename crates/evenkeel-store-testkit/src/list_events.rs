//! The list of cases about events.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __event_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => events:
            an_event_is_read_as_it_was_told,
            an_event_names_its_job_as_it_was_called_then,
            numbers_go_up_in_the_order_of_telling,
            a_page_looks_at_no_more_than_asked_for,
            a_tenant_reads_its_own,
            what_was_lost_is_told_where_it_was_lost,
            the_newest_are_kept,
            without_any_event_there_is_no_gap_to_tell,
            numbers_go_on_after_a_restart,
            somebody_listens_until_the_latest_moment,
            events_reach_other_nodes_and_wake_them,
            of_many_who_tell_at_once_nobody_is_overlooked,
            jobs_are_found_by_number_also_when_they_are_deleted,
        }
    };
}
