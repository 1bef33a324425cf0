//! The families of rows: which rows each measures, and what it needs.

use std::env;
use std::path::PathBuf;

use anyhow::Result;

use crate::row::Row;
use crate::{
    above_hyper, calls, cold_load, durable, fleet, forecast, gateway, growth, http, lookup, memory, rules, save,
    scrape, select, start,
};

/// Is the row of this name wanted?
pub(crate) type Wanted<'w> = &'w dyn Fn(&str) -> bool;

/// Rows that are measured together.
pub(crate) struct Family {
    pub(crate) rows: &'static [&'static str],
    /// Programs that do not come with Rust.
    pub(crate) needs: &'static [&'static str],
    pub(crate) run: fn(Wanted<'_>) -> Result<Vec<Row>>,
}

/// In the order of the table.
pub(crate) const FAMILIES: [Family; 16] = [
    http::FAMILY,
    calls::FAMILY,
    above_hyper::FAMILY,
    lookup::FAMILY,
    cold_load::FAMILY,
    save::FAMILY,
    durable::FAMILY,
    forecast::FAMILY,
    rules::FAMILY,
    select::FAMILY,
    memory::FAMILY,
    start::FAMILY,
    gateway::FAMILY,
    scrape::FAMILY,
    growth::FAMILY,
    fleet::FAMILY,
];

impl Family {
    /// Measures those of its rows that are `selected`; an empty selection means all.
    pub(crate) fn measure(&self, selected: &[String]) -> Vec<Row> {
        let wanted = |row: &str| selected.is_empty() || selected.iter().any(|name| name.eq_ignore_ascii_case(row));
        let ids: Vec<&'static str> = self.rows.iter().copied().filter(|row| wanted(row)).collect();
        if ids.is_empty() {
            return Vec::new();
        }
        if self.needs.iter().any(|program| find(program).is_none()) {
            let why = format!("skipped: install {}", self.needs.join(" and "));
            return ids.into_iter().map(|id| Row::unmeasured(id, why.clone())).collect();
        }
        crate::table::announce(&ids);
        (self.run)(&wanted).unwrap_or_else(|error| {
            let why = format!("failed: {error:#}");
            ids.into_iter().map(|id| Row::unmeasured(id, why.clone())).collect()
        })
    }
}

const POSTGRES: &str = "/usr/lib/postgresql/15/bin";

/// Where a program is. Administrators' programs count, and those of PostgreSQL's server as Debian has them, which are
/// not on every user's path.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into(), POSTGRES.into()]);
    directories.map(|directory| directory.join(program)).find(|file| file.is_file())
}
