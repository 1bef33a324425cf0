//! How well memories match a text: made from what a database tells, so that every one comes to the same order.

pub(super) mod matched_terms;
pub(super) mod ranking;
pub(super) mod row_cache;
pub(super) mod score_page;
pub(super) mod search_scope;
pub(super) mod term_counts;
