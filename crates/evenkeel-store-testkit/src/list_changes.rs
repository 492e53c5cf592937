//! The list of cases about requests that change something.

/// Part of [`store_conformance!`](crate::store_conformance).
#[doc(hidden)]
#[macro_export]
macro_rules! __change_conformance {
    ($open:path) => {
        $crate::__conformance_module! { $open => requests:
            a_request_is_begun_once,
            an_ended_request_gives_its_answer_again,
            a_request_that_came_to_nothing_may_be_sent_again,
            another_request_with_the_key_is_told_apart_however_it_stands,
            a_request_that_was_given_up_is_begun_by_somebody_else,
            whoever_was_given_up_changes_nothing,
            an_answer_is_given_once_and_stays,
            each_tenant_has_its_own_keys,
            of_many_at_once_one_begins,
            of_many_who_find_it_given_up_one_begins,
            old_ones_are_forgotten_oldest_first_up_to_the_limit,
            answers_are_there_after_a_restart,
        }
    };
}
