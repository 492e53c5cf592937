//! The list of cases about keys and the log of what was done.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __access_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => api_keys:
            a_key_is_found_by_its_hash_with_all_that_was_said,
            a_hash_that_nobody_has_finds_nothing,
            a_name_is_taken_until_its_key_is_taken_back,
            of_two_who_take_a_name_at_once_one_gets_it,
            another_tenant_may_use_the_name,
            a_key_that_was_taken_back_is_found_and_says_so,
            a_key_is_taken_back_once,
            a_key_of_another_tenant_is_not_taken_back,
            the_newest_use_is_kept,
            keys_are_listed_oldest_first_a_page_at_a_time,
            the_database_says_when_a_key_was_made_and_taken_back,
            keys_outlive_a_restart,
        }
        $crate::__conformance_module! { $open => secrets:
            a_secret_is_read_back_as_it_was_stored,
            a_new_value_raises_the_version_and_keeps_who_created_it,
            a_deleted_secret_is_gone_and_starts_anew,
            secrets_are_listed_by_name_a_page_at_a_time,
            a_tenant_reaches_its_own_secrets_only,
            only_names_that_exist_are_found,
            secrets_under_another_key_are_walked_in_batches,
            a_value_is_resealed_only_if_it_is_still_the_same,
            secrets_of_other_tenants_are_resealed_only_on_request,
            secrets_outlive_a_restart,
        }
        $crate::__conformance_module! { $open => audit:
            an_entry_is_read_back_as_it_was_written,
            the_newest_comes_first_whatever_came_in_first,
            pages_follow_each_other_by_cursor_also_within_one_moment,
            pages_follow_each_other_by_offset,
            each_filter_lets_its_own_pass,
            a_tenant_sees_its_own,
            what_is_nobodys_is_shown_on_request,
            a_page_looks_at_a_bounded_number,
            old_entries_are_forgotten_the_oldest_first,
            many_write_at_once_and_nothing_is_lost,
        }
    };
}
