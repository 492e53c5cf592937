//! The list of cases about load and moves.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __balance_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => balance_counts:
            a_job_counts_from_its_registration,
            jobs_of_one_rhythm_are_counted_together,
            jobs_without_a_rhythm_or_a_next_time_count_for_nothing,
            a_job_whose_name_is_taken_does_not_count,
            a_paused_job_does_not_count_until_it_goes_on,
            a_job_that_is_over_does_not_count,
            a_changed_job_counts_as_what_it_is,
            orders_in_one_batch_are_counted_each,
            an_order_that_is_not_obeyed_changes_no_count,
            firing_changes_no_count_until_the_last_time,
            a_refused_fire_changes_no_count,
            a_job_that_its_failures_stop_does_not_count_until_it_is_retried,
            a_periodic_job_counts_whenever_its_next_time_is,
            each_tenant_is_counted_by_itself,
            placements_of_named_jobs_are_the_scopes_that_are_in_its_plan,
            a_placement_says_what_a_move_must_know,
            whoever_comes_and_goes_at_once_is_counted,
            counts_are_there_after_a_restart,
        }
        $crate::__conformance_module! { $open => balance_moves:
            a_moved_job_has_its_new_time,
            a_moved_job_runs_in_its_new_rhythm_once_at_each_time,
            a_moved_job_is_loaded_with_the_slot_of_its_new_time,
            schedulers_are_told_of_what_is_due_soon,
            what_is_not_as_it_was_decided_on_stays,
            a_new_time_must_be_in_the_future_and_after_the_last_fired_one,
            what_is_due_is_not_moved_and_runs,
            live_jobs_are_moved_if_that_is_wanted,
            a_move_to_a_rhythm_that_is_not_given_is_not_made,
            jobs_of_other_tenants_stay,
            parts_are_done_in_their_order_and_once,
            what_does_not_go_on_moves_nothing,
            a_thousand_jobs_are_moved_at_once,
            of_a_fire_and_a_move_at_once_one_is_first,
            of_many_who_do_a_part_at_once_one_does,
        }
        $crate::__conformance_module! { $open => balance_plans:
            a_plan_is_read_back_as_it_was_kept,
            a_plan_may_have_no_moves,
            a_planned_one_begins_and_ends,
            a_stopped_one_may_go_on,
            a_plan_that_did_not_begin_does_not_end,
            one_of_a_tenant_goes_on_at_a_time,
            one_that_was_left_alone_may_be_begun_again,
            one_that_undoes_another_marks_it_when_it_begins,
            one_that_was_left_alone_may_be_undone,
            what_was_undone_in_part_may_be_undone_again,
            of_many_who_begin_the_same_at_once_one_does,
            of_many_who_begin_at_once_one_goes_on,
            those_that_move_are_listed_newest_first,
            tenants_do_not_see_each_others,
            the_first_score_of_an_hour_stays,
            scores_come_by_time_from_the_first_hour_asked_for_to_before_the_last,
            old_scores_and_plans_are_forgotten,
            what_goes_on_only_in_name_is_forgotten_as_well,
            a_large_plan_is_forgotten_in_several_steps,
        }
        $crate::__conformance_module! { $open => balance_weigh:
            a_job_counts_for_what_its_runs_take_once_it_is_weighed,
            what_differs_little_stays,
            a_cost_that_was_stated_stays,
            jobs_that_do_not_count_weigh_nothing,
            a_move_keeps_what_a_job_counts_for,
            counts_are_right_whatever_happens,
        }
    };
}
