//! The list of cases about the order of the queue.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __queue_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => aging:
            whoever_has_waited_long_goes_before_a_higher_priority,
            of_equal_rank_the_nearer_deadline_goes_first,
            above_the_cap_whoever_has_waited_longer_still_goes_first,
            waiting_does_not_count_beyond_its_lane,
            waiting_counts_across_pools,
            guaranteed_places_go_to_whoever_has_waited,
            many_places_are_shared_by_new_and_old,
            without_steps_nobody_rises,
            a_stream_of_higher_priorities_starves_nobody,
            what_was_closed_does_not_hold_up_who_has_waited,
            a_claim_says_since_when_it_waited,
            what_is_given_back_keeps_its_age,
            what_is_ahead_is_counted_by_rank,
            claims_come_in_the_order_of_the_model_whatever_happens,
        }
        $crate::__conformance_module! { $open => reaging:
            what_waits_already_waits_as_is_said_now,
            a_step_goes_no_further_than_its_limit,
            what_was_given_another_priority_keeps_its_place,
            what_is_ahead_is_so_by_what_it_has_waited,
            who_is_ahead_is_claimed_before,
            what_runs_knows_the_priority_it_was_given,
        }
        $crate::__conformance_module! { $open => priorities:
            a_trigger_may_have_a_priority_of_its_own,
            a_run_without_one_of_its_own_has_its_jobs,
            a_trigger_beside_others_keeps_its_own,
            a_retry_keeps_it,
            a_postponed_run_keeps_it,
            a_changed_priority_reaches_what_waits,
            a_changed_priority_keeps_what_was_waited,
            a_changed_priority_leaves_alone_what_was_given_its_own,
            a_change_of_something_else_moves_nobody,
        }
    };
}
