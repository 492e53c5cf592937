//! The list of cases about lists and sums: one list would be too long.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __list_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => list_filters:
            any_filter_and_order_shows_what_the_model_shows,
            jobs_in_each_state_are_found_and_counted,
            what_goes_on_of_a_job_is_found_whether_it_takes_part_or_not,
            jobs_of_all_tenants_are_counted_by_state,
            metadata_are_found_as_json_writes_them,
            what_a_change_takes_away_is_not_found_any_more,
            a_deleted_job_is_found_by_nothing,
            jobs_of_others_are_neither_found_nor_counted,
        }
        $crate::__conformance_module! { $open => list_due:
            a_due_job_is_pending_unless_a_blackout_holds_it,
            a_due_job_that_was_fired_is_counted_once,
        }
        $crate::__conformance_module! { $open => list_walks:
            a_long_list_is_walked_in_its_order,
            a_rare_job_in_a_long_list_is_found_page_by_page,
            a_crowded_quarter_of_an_hour_is_walked_once,
        }
        $crate::__conformance_module! { $open => queue_depths:
            an_empty_queue_has_no_depth,
            what_waits_is_counted_by_pool_lane_and_priority,
            what_was_claimed_waits_no_more,
            what_waits_of_all_tenants_is_counted,
            a_deep_lane_is_counted_in_part_and_hides_no_other,
            what_waits_in_too_many_pools_is_added_up,
            a_claimed_attempt_says_since_when_it_waited,
            the_front_is_another_one_when_somebody_takes_from_it,
            the_front_is_that_of_its_pools_and_as_long_as_asked_for,
        }
        $crate::__conformance_module! { $open => tally:
            what_nodes_have_seen_adds_up,
            what_ran_is_forgotten_when_a_node_mentions_it_no_more,
            what_ran_on_a_lost_node_does_not_count,
            failures_are_grouped_by_what_they_have_in_common,
            failures_of_a_deleted_job_stay_without_it,
            failures_are_listed_newest_first_page_by_page,
            old_failures_are_forgotten_in_steps,
        }
    };
}
