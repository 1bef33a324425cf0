//! Metrics of the database that several daemons share.

use std::time::Duration;

use prometheus::{Gauge, IntCounter, IntGauge};

use super::Registered;

/// How it stands with the database; without one all is as if it were there and idle.
#[derive(Debug)]
pub struct DatabaseMetrics {
    reachable: IntGauge,
    waiting: IntGauge,
    spooled_bytes: IntGauge,
    spool_max: IntGauge,
    oldest: Gauge,
    put_aside: IntCounter,
    reconnects: IntCounter,
    behind: IntGauge,
    followed: Gauge,
}

/// Figures at a moment.
#[derive(Debug, Clone, Copy)]
pub struct DatabaseFigures {
    /// Does the database take what is sent, and answer what is asked?
    pub is_reachable: bool,
    /// Records that only this machine has.
    pub waiting: usize,
    /// Bytes of them.
    pub spooled_bytes: u64,
    /// Bytes that may wait.
    pub spool_max: u64,
    /// How long the oldest has waited.
    pub oldest: Duration,
    /// Records put aside since the start.
    pub put_aside: u64,
    /// Connections opened in place of one that failed since the start.
    pub reconnects: u64,
    /// Records and other transactions of other daemons that are not known here.
    pub behind: u64,
    /// How long ago all of them were.
    pub followed: Duration,
}

impl DatabaseMetrics {
    pub(super) fn new(made: &Registered<'_>) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            reachable: made.gauge(
                "almanac_database_reachable",
                "1 if the database that several daemons share takes what is sent and answers, or if there is none.",
            )?,
            waiting: made.gauge("almanac_spool_records", "Records that only this machine has, not the database.")?,
            spooled_bytes: made.gauge("almanac_spool_bytes", "Bytes of records that only this machine has.")?,
            spool_max: made.gauge(
                "almanac_spool_max_bytes",
                "Bytes of records that may wait on this machine (store.spool_max); beyond them records are refused.",
            )?,
            oldest: made.register(Gauge::new(
                "almanac_spool_oldest_seconds",
                "How long the oldest record of the spool has waited.",
            )?)?,
            put_aside: made.counter(
                "almanac_records_put_aside_total",
                "Acknowledged records that the database refused for what they are; they are in spool.refused.",
            )?,
            reconnects: made.counter(
                "almanac_database_reconnects_total",
                "Connections for writing that were opened in place of one that failed.",
            )?,
            behind: made.gauge(
                "almanac_following_behind",
                "Records and other transactions of other daemons that this one did not know when it looked last.",
            )?,
            followed: made.register(Gauge::new(
                "almanac_following_lag_seconds",
                "How long ago this daemon knew all that others wrote; at most half a second if all is well.",
            )?)?,
        };
        metrics.reachable.set(1);
        Ok(metrics)
    }

    /// Shows these figures from now on.
    pub fn show(&self, figures: &DatabaseFigures) {
        self.reachable.set(figures.is_reachable.into());
        self.waiting.set(figures.waiting as i64);
        self.spooled_bytes.set(figures.spooled_bytes.cast_signed());
        self.spool_max.set(i64::try_from(figures.spool_max).unwrap_or(i64::MAX));
        self.oldest.set(figures.oldest.as_secs_f64());
        self.behind.set(figures.behind.cast_signed());
        self.followed.set(figures.followed.as_secs_f64());
        self.put_aside.inc_by(figures.put_aside.saturating_sub(self.put_aside.get()));
        self.reconnects.inc_by(figures.reconnects.saturating_sub(self.reconnects.get()));
    }
}
