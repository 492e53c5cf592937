//! The list of cases, in one place.

/// Tests a store: `store_conformance!(open)`, where `open` is an `async fn() -> Opened` that makes
/// an empty database. Every case is a test of its own.
#[macro_export]
macro_rules! store_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => bulk:
            ten_thousand_jobs_are_registered_at_once,
            a_thousand_jobs_are_fired_and_ended_at_once,
            a_thousand_attempts_go_through_the_queue_twice,
            a_thousand_retries_wait_and_fire,
        }
        $crate::__conformance_module! { $open => checkpoints:
            it_reaches_the_next_attempt,
            it_reaches_the_same_attempt_after_a_return,
            it_reaches_whoever_takes_over_after_a_steal,
            the_last_one_counts,
            an_end_may_save_the_first,
            an_end_may_forget_it,
            it_is_its_runs_alone,
            a_refused_end_changes_nothing_of_it,
            ends_with_and_without_traces_share_a_batch,
            one_job_may_end_several_times_in_a_batch_with_traces,
            pruning_keeps_what_a_live_run_will_ask_for,
            of_a_note_and_an_end_at_once_the_end_has_the_last_word,
        }
        $crate::__conformance_module! { $open => cancel:
            what_runs_is_asked_to_end_until_it_has,
            a_later_attempt_is_found_by_the_id_of_its_run,
            what_waits_in_the_queue_is_recorded_as_cancelled,
            a_retry_that_waits_is_recorded_as_cancelled,
            a_trigger_that_waits_is_recorded_as_cancelled,
            an_attempt_back_in_the_queue_is_recorded_as_cancelled,
            a_retry_after_it_was_asked_to_end_ends_the_chain_instead,
            a_failure_after_it_was_asked_to_end_does_not_stop_the_job,
            an_attempt_that_was_asked_to_end_does_not_go_back_into_the_queue,
            a_run_that_ended_never_was_or_is_anothers_is_not_cancelled,
        }
        $crate::__conformance_module! { $open => claim:
            a_claim_starts_the_attempt,
            what_waits_is_counted_by_pool_up_to_a_limit,
            no_attempt_is_given_twice,
            a_worker_gets_no_more_than_it_has_room_for,
            order_is_lane_then_priority_then_deadline_then_age,
            the_first_in_order_are_given_first,
            guaranteed_places_go_first_and_the_rest_in_order_of_lanes,
            places_that_a_lane_does_not_need_go_to_others,
            without_guarantees_earlier_lanes_take_all,
            guarantees_beyond_the_room_are_cut_from_the_last_lane,
            what_is_claimed_comes_in_the_order_of_dispatch_even_with_guarantees,
            a_worker_gets_nothing_from_other_pools,
            room_is_shared_by_all_pools_of_a_worker,
            a_node_that_is_not_live_gets_nothing,
            a_claimed_run_keeps_its_place_among_the_runs_of_its_job,
        }
        $crate::__conformance_module! { $open => delete:
            a_deleted_job_is_nowhere,
            a_second_deletion_finds_nothing,
            its_name_is_free,
            its_history_stays,
            what_waits_in_the_queue_is_recorded_as_cancelled,
            a_retry_that_waits_is_recorded_as_cancelled,
            a_trigger_that_waits_is_recorded_as_cancelled,
            an_attempt_back_in_the_queue_is_recorded_as_cancelled,
            what_runs_is_asked_to_end_until_it_has,
            what_runs_may_still_end,
            a_retry_of_it_ends_the_chain_instead,
            an_attempt_of_it_that_goes_back_is_cancelled_instead,
            a_wake_of_it_that_was_told_is_stale,
        }
        $crate::__conformance_module! { $open => finish:
            an_end_is_recorded_with_its_results,
            every_outcome_is_recorded_as_its_status,
            the_end_of_a_chain_is_one_live_chain_fewer,
            another_fence_is_lease_lost_and_changes_nothing,
            another_node_is_lease_lost_and_changes_nothing,
            an_attempt_that_waits_is_nobodys_to_end,
            an_attempt_that_never_was_is_lease_lost,
            a_second_finish_is_already_done_and_counts_once,
            a_second_finish_makes_no_second_retry,
            ends_of_a_batch_do_not_spoil_each_other,
            one_job_may_end_several_times_in_a_batch,
            stopping_the_job_takes_its_next_time_away,
            a_draining_node_may_finish_what_it_has,
            others_finish_for_a_dead_node,
            a_text_with_a_nul_ends_the_attempt_all_the_same,
            a_long_log_is_whole_for_one_run_and_cut_in_lists,
            an_attempt_without_results_has_none,
            an_end_that_comes_late_corrects_the_skips_since_then,
            an_empty_batch_is_fine,
        }
        $crate::__conformance_module! { $open => fire:
            a_due_job_is_started_and_advanced,
            a_started_attempt_is_running_on_the_node_that_fired_it,
            a_queued_attempt_is_pending_and_its_chain_is_live,
            a_queued_chain_is_the_new_head_at_once,
            another_generation_is_stale,
            another_next_time_is_stale,
            another_head_is_stale,
            a_time_that_has_not_come_is_early,
            a_live_job_that_must_be_idle_is_busy,
            a_job_with_a_waiting_retry_is_busy_and_says_so,
            a_job_whose_trigger_waits_is_busy_without_a_retry,
            a_live_job_that_need_not_be_idle_runs_beside_itself,
            a_deleted_job_is_stale,
            a_job_that_never_was_is_stale,
            a_job_without_a_next_time_is_stale,
            one_time_never_fires_twice,
            jobs_of_a_batch_do_not_spoil_each_other,
            answers_come_in_the_order_of_the_batch,
            a_dead_node_fires_nothing,
            a_draining_node_fires_nothing,
            an_unknown_or_gone_node_fires_nothing,
            skipped_times_are_recorded_and_linked_before_the_run,
            a_skip_record_has_the_number_of_the_attempt_before_it,
            times_may_be_skipped_without_firing_any,
            a_busy_job_may_still_skip,
            a_job_whose_last_time_fired_has_no_next_time,
            numbers_count_the_attempts_of_a_job_from_one,
            an_empty_batch_is_fine,
        }
        $crate::__conformance_module! { $open => history:
            a_new_job_has_no_history,
            a_cancelled_attempt_leaves_only_its_times,
            a_retried_attempt_counts_as_well,
            the_scheduler_is_told_the_average,
            any_sequence_of_ends_gives_the_history_of_core,
            alpha_is_the_callers,
        }
        $crate::__conformance_module! { $open => letters:
            a_letter_is_delivered_once,
            the_same_letter_again_changes_nothing,
            a_letter_reaches_its_node_alone,
            no_more_than_the_limit_is_taken,
            letters_of_a_node_that_has_gone_are_forgotten,
            a_settled_letter_wakes_those_who_listen,
            of_those_who_take_at_once_each_letter_reaches_one,
            of_a_retirement_and_a_letter_nothing_is_left,
        }
        $crate::__conformance_module! { $open => list:
            jobs_come_oldest_first_and_as_they_are,
            pages_cover_all_exactly_once,
            a_page_that_nothing_follows_has_no_next,
            an_offset_leaves_out_the_first,
            a_prefix_is_taken_letter_by_letter,
            jobs_of_a_source_can_be_listed,
            jobs_of_a_target_can_be_listed,
            a_filtered_list_is_paged_as_well,
            a_deleted_job_leaves_no_gap_in_a_page,
        }
        $crate::__conformance_module! { $open => look_ahead:
            a_loaded_job_is_what_firing_needs,
            equal_definitions_are_equal_texts,
            a_slot_is_loaded_whole_and_with_all_before_it,
            due_jobs_come_by_number_and_page_by_page,
            other_shards_are_left_out,
            a_fired_job_is_found_in_the_slot_of_its_new_time,
            given_jobs_are_loaded_as_they_are_now,
            changed_jobs_are_told_once,
            what_is_over_the_limit_is_told_the_next_time,
            no_shards_have_no_news,
        }
        $crate::__conformance_module! { $open => node_races:
            of_incarnations_that_join_at_once_one_lives,
            of_a_ping_and_a_steal_one_wins,
            of_a_steal_and_a_fire_no_attempt_is_lost,
            of_a_retirement_and_a_claim_no_attempt_is_lost,
        }
        $crate::__conformance_module! { $open => nodes:
            a_node_that_joins_is_live,
            former_incarnations_of_an_identity_are_dead,
            a_draining_incarnation_is_a_former_one_too,
            an_incarnation_that_is_gone_is_not_taken_over,
            nodes_of_one_name_and_two_identities_live_side_by_side,
            a_ping_is_answered_with_the_time_and_all_members,
            dead_nodes_are_members_until_they_are_gone,
            a_draining_node_is_alive,
            draining_does_not_bring_a_dead_node_back,
            an_unknown_or_gone_node_is_fenced,
            a_node_retires_only_when_it_has_nothing,
            an_attempt_of_another_node_does_not_keep_one_from_retiring,
            a_run_names_the_node_that_had_it_even_when_that_is_gone,
        }
        $crate::__conformance_module! { $open => notes:
            a_note_is_shown_while_the_attempt_runs,
            a_note_is_not_shown_after_an_end_that_did_not_know_of_it,
            lists_leave_notes_out,
            what_a_note_leaves_out_stays,
            another_fence_or_node_says_nothing_and_is_told,
            what_waits_or_has_ended_says_nothing,
            notes_of_a_batch_do_not_spoil_each_other,
            an_attempt_that_went_back_starts_with_nothing_said,
            attempt_0_shows_what_the_latest_attempt_says,
            a_text_with_a_nul_is_noted_all_the_same,
            a_thousand_attempts_say_something_at_once,
            an_empty_batch_is_fine,
            a_refused_end_leaves_the_notes,
            pruning_leaves_nothing_to_a_later_run_with_the_same_key,
            who_runs_an_attempt_is_found,
        }
        $crate::__conformance_module! { $open => owned:
            all_that_runs_on_a_node_is_found,
            an_owned_attempt_is_all_that_taking_it_over_needs,
            what_has_ended_is_nobodys,
            no_more_than_the_limit_is_told,
            of_given_attempts_those_that_run_on_the_node_are_found,
            a_fire_for_an_older_time_than_announced_is_found,
            a_claim_for_an_older_time_than_announced_is_found,
            a_retry_for_an_older_time_than_announced_is_found,
            a_ping_that_names_no_bound_keeps_the_one_before,
            a_long_run_is_found_though_the_bound_lies_after_it,
            a_long_run_is_told_once_though_the_bound_lies_before_it,
            a_long_run_that_has_ended_is_nobodys,
            a_node_that_keeps_a_long_run_does_not_retire,
        }
        $crate::__conformance_module! { $open => page_lists:
            a_listed_page_is_as_it_was_kept,
            a_list_shows_the_beginning_of_each_text,
            lists_cover_all_pages_exactly_once,
            an_offset_leaves_out_the_first,
            pages_can_be_listed_by_the_beginning_of_their_url,
            one_tenant_finds_no_page_of_another,
            a_thousand_pages_are_kept_in_batches_and_found,
        }
        $crate::__conformance_module! { $open => page_search:
            every_wanted_word_must_be_there,
            words_are_taken_as_they_are,
            a_phrase_stands_in_one_piece,
            the_beginning_of_a_word_can_be_looked_for,
            what_is_unwanted_must_not_be_there,
            case_and_accents_make_no_difference,
            words_are_found_in_any_script,
            what_is_not_seen_in_a_word_makes_no_difference,
            what_a_word_is_does_not_depend_on_what_is_around_it,
            nothing_that_is_looked_for_is_syntax,
            a_search_of_which_nothing_is_left_finds_nothing,
            pages_with_all_of_it_in_the_title_come_first,
            a_page_that_says_it_more_often_comes_before_one_of_its_length,
            equals_come_in_the_order_of_their_numbers_and_paging_is_complete,
            a_snippet_shows_what_was_looked_for,
            a_changed_page_is_found_by_its_new_words_alone,
            a_search_shows_no_more_than_a_hundred_at_once,
            a_search_can_be_confined_to_a_job,
            huge_pages_are_kept_and_their_beginnings_found,
        }
        $crate::__conformance_module! { $open => pages:
            a_page_reads_back_as_it_was_found,
            a_page_that_never_was_is_not_there,
            an_empty_batch_is_fine,
            new_changed_and_unchanged_pages_are_told_apart_in_the_order_given,
            a_changed_page_keeps_its_number_and_its_first_time,
            an_unchanged_page_is_only_seen,
            a_page_that_was_seen_is_younger_and_nothing_else,
            of_known_pages_is_told_what_a_crawl_needs,
            a_page_that_does_not_fit_is_left_out,
            a_page_that_outgrows_the_room_keeps_its_old_content,
            a_full_job_may_change_a_page_that_does_not_grow,
            each_job_has_a_room_of_its_own,
            a_forgotten_page_is_gone_and_its_room_is_free,
            pages_of_a_deleted_job_are_nowhere_and_cleared_in_steps,
            deleted_jobs_without_pages_do_not_hide_those_that_have_some,
            a_deleted_job_and_one_of_another_tenant_keep_nothing,
            characters_that_no_store_keeps_become_spaces,
            batches_for_one_job_at_once_do_not_overfill_it,
            a_deletion_while_pages_are_kept_leaves_nothing_behind,
            pages_are_there_after_a_restart,
        }
        $crate::__conformance_module! { $open => prune:
            only_the_newest_of_each_job_are_kept,
            nothing_that_ended_before_is_kept,
            the_newest_good_and_the_newest_failed_attempt_stay,
            a_partly_failed_attempt_is_a_good_one,
            what_runs_or_waits_stays,
            skip_records_are_forgotten_too,
            an_attempt_cancelled_before_it_started_is_forgotten_by_age,
            small_steps_get_to_the_end_all_the_same,
            a_step_goes_on_after_the_given_key,
            an_empty_history_is_at_its_end,
            listing_finds_what_is_left_across_the_gap,
            a_pruned_job_fires_on,
        }
        $crate::__conformance_module! { $open => races:
            each_job_is_fired_once_by_whoever_is_first,
            no_attempt_is_given_to_two_workers,
            of_triggers_at_once_one_is_accepted,
            triggers_at_once_that_may_overlap_get_keys_of_their_own,
            a_trigger_and_a_regular_time_do_not_overlap,
            a_deletion_and_a_fire_agree_on_what_runs,
            a_deletion_and_a_trigger_leave_nothing_to_start,
            of_an_end_and_a_return_one_wins,
            of_two_ends_at_once_one_counts,
            runs_of_one_job_that_end_at_once_are_all_counted,
            a_wake_is_fired_by_one_node,
            a_changed_job_is_told_to_one_scheduler,
            a_change_and_a_fire_come_one_after_the_other,
            of_jobs_with_one_name_registered_at_once_one_is_created,
            a_setting_has_one_value_for_all_who_ask_at_once,
        }
        $crate::__conformance_module! { $open => register:
            a_new_job_reads_back_as_it_was_given,
            one_that_is_registered_paused_is_as_if_somebody_paused_it,
            one_that_is_registered_paused_may_be_in_the_way_or_kept_out,
            answers_come_in_the_order_given,
            a_name_that_is_stored_is_taken,
            a_name_earlier_in_the_batch_is_taken,
            a_name_with_another_configuration_is_free,
            names_that_differ_in_case_differ,
            jobs_without_a_name_never_collide,
            a_job_may_have_no_next_time,
            the_scheduler_is_told_of_jobs_due_before_the_end_of_the_next_slot,
            an_empty_batch_is_fine,
            numbers_of_jobs_grow_and_are_not_used_again,
        }
        $crate::__conformance_module! { $open => requeue:
            an_attempt_goes_back_with_a_higher_fence_and_the_same_number,
            the_next_owner_has_a_higher_fence_again,
            only_crashes_are_counted,
            the_former_owner_can_neither_end_it_nor_put_it_back,
            another_node_or_fence_puts_nothing_back,
            what_has_ended_or_waits_does_not_go_back,
            attempts_of_a_batch_are_answered_in_order,
            others_put_back_for_a_dead_node,
            a_later_attempt_goes_back_as_well,
            an_attempt_that_went_back_is_listed_once,
            an_attempt_that_went_back_shows_the_node_that_had_it,
            its_place_in_the_queue_is_that_of_its_new_ticket,
            an_attempt_that_fails_is_over_and_says_why,
            a_loss_that_is_no_crash_fails_without_being_counted,
            only_the_owner_fails_an_attempt_and_only_once,
            some_of_a_batch_go_back_and_others_fail,
        }
        $crate::__conformance_module! { $open => runs:
            one_jobs_runs_come_newest_chain_first,
            all_runs_come_newest_scheduled_time_first,
            attempts_of_one_chain_come_newest_first_among_all_runs,
            pages_of_one_job_cover_all_exactly_once,
            pages_of_all_jobs_cover_all_exactly_once,
            an_offset_leaves_out_the_first,
            the_order_of_chains_is_that_of_firing_not_of_times,
            a_listed_run_is_the_same_as_one_asked_for,
            attempt_0_stands_for_the_latest_attempt,
            attempt_0_stands_for_a_retry_in_the_queue,
            a_run_that_never_was_is_not_there,
            a_job_that_never_ran_has_no_runs,
            runs_of_other_jobs_are_left_out,
        }
        $crate::__conformance_module! { $open => steal:
            only_a_silent_node_is_challenged,
            a_second_challenge_does_not_move_the_first,
            a_ping_answers_the_challenge,
            a_ping_from_the_future_counts_as_now,
            a_lease_is_taken_only_after_the_grace,
            a_lease_is_taken_only_for_the_challenge_that_was_seen,
            a_node_that_was_not_challenged_keeps_its_lease,
            a_draining_node_can_lose_its_lease,
            a_node_without_a_lease_is_not_challenged,
            nothing_a_stolen_node_does_counts,
            what_a_stolen_node_had_is_put_back_and_its_late_end_is_refused,
        }
        $crate::__conformance_module! { $open => tenants:
            a_tenant_has_one_number_for_ever,
            names_of_other_tenants_are_free,
            a_job_of_another_tenant_is_not_there,
            lists_of_jobs_hold_ones_own,
            a_run_of_another_tenant_is_not_there,
            lists_of_runs_hold_ones_own,
            an_update_takes_no_name_of_ones_own_but_may_take_anothers,
            the_scheduler_and_workers_serve_all_tenants,
        }
        $crate::__conformance_module! { $open => trigger:
            the_key_is_made_of_now_and_the_number,
            a_number_that_is_taken_gives_way_to_the_next,
            the_chain_is_live_and_waits_from_here_on,
            the_rhythm_is_not_disturbed,
            the_wake_is_due_now,
            a_fired_trigger_is_the_newest_chain,
            a_job_that_runs_is_busy_unless_overlap_is_allowed,
            a_job_that_was_triggered_is_busy,
            a_job_without_a_next_time_can_be_triggered,
            a_job_that_is_not_there_is_not_found,
        }
        $crate::__conformance_module! { $open => update:
            a_change_raises_the_generation_and_says_when,
            what_is_not_changed_stays,
            each_part_can_be_changed,
            the_next_time_can_be_taken_away,
            the_expected_generation_must_be_the_current_one,
            a_next_time_that_is_not_after_the_last_fired_one_is_a_conflict,
            a_skipped_time_counts_as_fired,
            a_name_of_another_job_is_taken,
            a_job_may_keep_its_own_name,
            a_changed_name_frees_the_old_one,
            a_job_that_is_not_there_is_not_found,
            the_scheduler_is_told_of_a_changed_job_that_is_due_soon,
            a_change_does_not_touch_what_runs,
        }
        $crate::__conformance_module! { $open => wakes:
            a_retry_keeps_the_chain_live_and_waits,
            a_wake_is_told_until_it_is_fired,
            a_wake_fires_once,
            a_started_retry_is_the_next_attempt_of_its_run,
            a_queued_retry_waits_for_a_worker,
            a_queued_trigger_is_the_new_head_when_it_is_fired,
            a_wake_that_has_not_come_is_early,
            a_wake_with_another_due_time_is_stale,
            wakes_of_a_batch_do_not_spoil_each_other,
            a_node_that_is_not_live_fires_no_wake,
            wakes_come_oldest_first_up_to_the_limit,
            a_waiting_trigger_is_shown_as_pending_but_not_listed,
            a_waiting_retry_is_shown_as_pending_to_those_who_ask_for_its_key,
        }
        $crate::__conformance_module! { $open => whole:
            its_clock_goes_on,
            its_own_clock_stamps_what_is_written,
            by_its_own_clock_nothing_starts_early,
            the_first_value_of_a_setting_stays,
            everything_is_counted,
            a_signal_wakes_those_who_listen,
            a_signal_reaches_other_nodes,
            everything_is_there_after_a_restart,
            numbers_of_nodes_are_not_used_again,
        }
        $crate::__control_conformance! { $open }
        $crate::__promise_conformance! { $open }
        $crate::__event_conformance! { $open }
        $crate::__change_conformance! { $open }
        $crate::__list_conformance! { $open }
        $crate::__access_conformance! { $open }
        $crate::__balance_conformance! { $open }
        $crate::__queue_conformance! { $open }
        $crate::__target_conformance! { $open }
        $crate::__dead_conformance! { $open }
        $crate::__limit_conformance! { $open }
        $crate::__dedup_conformance! { $open }
        $crate::__settle_conformance! { $open }
    };
}

/// The tests of one module of cases.
#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_module {
    ($open:path => $module:ident: $($case:ident),+ $(,)?) => {
        mod $module {
            use super::*;

            $(
                #[test]
                fn $case() {
                    $crate::run_case($open, $crate::cases::$module::$case);
                }
            )+
        }
    };
}
