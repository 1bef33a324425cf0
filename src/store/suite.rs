//! What any implementation of the contract must do, as tests that are run against each.

pub(crate) mod forms;
pub(crate) mod memories;
pub(crate) mod records;
pub(crate) mod times;

use super::Store;

/// A place that keeps what a store stored while none runs. Records there are kept for a hundred years.
pub(crate) trait Site {
    /// Starts a store there; the one before has been dropped.
    fn start(&self) -> Box<dyn Store>;
}

/// Makes an empty site.
pub(crate) type Sites = fn() -> Box<dyn Site>;

/// Tests that the stores at these sites keep the contract.
macro_rules! keeps_the_contract {
    ($sites:expr) => {
        crate::store::suite::keeps_the_contract!($sites, where || true);
    };
    // Where there can be no such site, nothing is tested.
    ($sites:expr, where $can_be:expr) => {
        mod contract {
            use super::*;

            crate::store::suite::tests! {
                $sites, $can_be;
                records: what_was_acknowledged_is_there_after_a_restart, a_start_reads_back_the_latest_of_each_key,
                a_key_stands_for_what_was_told_under_it, every_key_comes_back,
                a_call_of_unknown_duration_is_its_session_s_alone, what_sessions_call_next_is_counted_and_read_back,
                records_are_listed_the_latest_first_page_by_page, what_was_predicted_stands_beside_the_call,
                sessions_are_listed_the_latest_first_page_by_page,
                the_last_turns_of_a_session_are_kept_without_their_messages;
                memories: a_memory_is_there_after_a_restart, the_same_call_told_again_is_the_same_memory,
                a_position_is_taken_once_and_a_refusal_fails_nobody_else,
                a_change_keeps_the_old_version_and_refuses_a_lost_update, a_person_is_forgotten_in_every_version,
                turns_that_are_kept_go_with_what_was_said_in_them,
                what_is_noted_again_of_what_went_goes_as_well,
                pages_of_a_search_are_of_one_moment_whoever_writes_meanwhile, an_archive_comes_back_as_it_was,
                ids_sort_by_their_text_and_moments_by_time,
                searches_answer_as_a_plain_filter_does;
                forms: a_word_is_found_in_all_its_forms;
                times: what_was_added_on_a_named_day_is_found,
                what_names_a_time_is_told_apart_where_one_is_asked_for;
            }
        }
    };
}

macro_rules! tests {
    ($sites:expr, $can_be:expr; $($room:ident: $($test:ident),+;)+) => {
        $($(
            #[test]
            fn $test() {
                if ($can_be)() {
                    crate::store::suite::$room::$test($sites);
                }
            }
        )+)+
    };
}

pub(crate) use {keeps_the_contract, tests};
