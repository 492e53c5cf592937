//! The list of cases about how many run at once.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __limit_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => limits:
            no_more_of_a_key_run_than_may,
            who_is_behind_goes_ahead,
            an_end_makes_room_for_the_next,
            who_ends_sends_as_many_back_as_have_ended,
            they_leave_the_waiting_room_in_the_order_of_dispatch,
            what_is_asked_to_end_has_its_place_until_it_has,
            a_retry_needs_a_place_of_its_own,
            what_a_dead_node_had_is_free_once_it_was_taken_over,
            what_is_handed_back_may_start_again,
            keys_of_tenants_do_not_meet,
            a_tenant_has_no_more_than_its_limit,
            a_lane_has_no_more_than_its_limit,
            who_is_under_several_limits_needs_a_place_of_each,
            guaranteed_places_go_to_others_if_limits_stand_in_the_way,
            a_place_goes_to_the_earlier_lane,
            jobs_of_a_key_may_differ_in_how_much_company_they_stand,
            places_outlive_a_restart,
            places_of_ended_runs_are_forgotten_and_others_kept,
            rooms_are_looked_into_one_after_the_other,
        }
        $crate::__conformance_module! { $open => parked:
            it_says_what_it_waits_for,
            it_is_a_run_that_is_pending,
            it_is_counted_apart,
            it_can_be_cancelled,
            a_pause_withdraws_it,
            a_deletion_withdraws_it,
            a_changed_key_reaches_it,
            a_changed_limit_reaches_it,
            it_goes_back_into_its_own_pool,
            what_may_not_be_claimed_now_stays_there,
            what_a_limit_of_the_tenant_holds_up_says_so,
            what_a_limit_of_a_lane_holds_up_does_not_say_how_many_run,
        }
        $crate::__conformance_module! { $open => limit_rooms:
            who_waits_for_a_key_too_is_in_nobodys_way,
            an_end_lets_whoever_can_start_go_and_not_only_the_first,
            more_than_one_look_takes_are_in_nobodys_way_either,
            whose_tenant_is_full_is_in_nobodys_way_in_the_room_of_a_lane,
            whose_lane_is_full_is_in_nobodys_way_in_the_room_of_a_key,
            who_has_a_place_of_its_key_waits_where_its_tenants_do,
            a_raised_limit_of_a_tenant_reaches_what_waits,
            without_their_limit_all_go_back_at_once,
            a_step_looks_at_no_more_than_so_many,
            those_who_have_waited_long_are_in_nobodys_way,
        }
        $crate::__conformance_module! { $open => limit_races:
            workers_at_once_never_exceed_a_limit_and_all_runs_end,
        }
    };
}
