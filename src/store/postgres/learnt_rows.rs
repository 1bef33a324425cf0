//! How what is learnt of calls stands in rows, each marked with the transaction that wrote it last.

use tokio_postgres::types::Type;

use super::fault::DatabaseFault;
use super::revision::Revision;
use super::session::DatabaseSession;
use crate::store::projection::CountedKey;

/// What a daemon counted of tools and modes, by columns.
#[derive(Default)]
pub(super) struct CountRows<'r> {
    tools: Vec<&'r str>,
    modes: Vec<&'r str>,
    failed: Vec<bool>,
    samples: Vec<i64>,
    last: Vec<i64>,
    latest: Vec<Vec<u8>>,
}

impl<'r> CountRows<'r> {
    /// Adds a key with how often it was called with a duration, the number of its last record, and its latest calls as
    /// bytes.
    pub(super) fn push(&mut self, key: &'r CountedKey, samples: i64, last: i64, latest: Vec<u8>) {
        self.tools.push(&key.tool);
        self.modes.push(&key.mode);
        self.failed.push(key.failed);
        self.samples.push(samples);
        self.last.push(last);
        self.latest.push(latest);
    }

    /// Writes them in place of what the daemon had counted of these keys.
    pub(super) async fn put(
        &self,
        session: &DatabaseSession,
        daemon: &[u8],
        revision: &Revision,
    ) -> Result<(), DatabaseFault> {
        let put = "INSERT INTO almanac.key_counts (daemon, tool, mode, failed, samples, last, latest, writer, revision)
            SELECT $1, tool, mode, failed, samples, last, latest, $8, $9
            FROM unnest($2::text[], $3::text[], $4::bool[], $5::int8[], $6::int8[], $7::bytea[])
                AS counted (tool, mode, failed, samples, last, latest)
            ON CONFLICT (daemon, tool, mode, failed) DO UPDATE
                SET samples = excluded.samples, last = excluded.last, latest = excluded.latest,
                    writer = excluded.writer, revision = excluded.revision";
        let writer = revision.writer();
        let values = [
            (&daemon as _, Type::BYTEA),
            (&self.tools as _, Type::TEXT_ARRAY),
            (&self.modes as _, Type::TEXT_ARRAY),
            (&self.failed as _, Type::BOOL_ARRAY),
            (&self.samples as _, Type::INT8_ARRAY),
            (&self.last as _, Type::INT8_ARRAY),
            (&self.latest as _, Type::BYTEA_ARRAY),
            (&writer as _, Type::BYTEA),
            revision.number(),
        ];
        session.query(put, &values).await.map(drop)
    }
}

/// What sessions called next, by columns.
#[derive(Default)]
pub(super) struct TrailRows<'r> {
    before: Vec<&'r str>,
    last: Vec<&'r str>,
    followers: Vec<String>,
    ticks: Vec<i64>,
}

impl<'r> TrailRows<'r> {
    /// Adds a state: the call before the last, empty for none, the last, what followed as text, and its number.
    pub(super) fn push(&mut self, before: &'r str, last: &'r str, followers: String, tick: i64) {
        self.before.push(before);
        self.last.push(last);
        self.followers.push(followers);
        self.ticks.push(tick);
    }

    /// Writes them in place of the daemon's states of the same calls.
    pub(super) async fn put(
        &self,
        session: &DatabaseSession,
        daemon: &[u8],
        revision: &Revision,
    ) -> Result<(), DatabaseFault> {
        if self.before.is_empty() {
            return Ok(());
        }
        let put = "INSERT INTO almanac.trails (daemon, before, last, followers, tick, writer, revision)
            SELECT $1, before, last, followers, tick, $6, $7
            FROM unnest($2::text[], $3::text[], $4::text[], $5::int8[]) AS followed (before, last, followers, tick)
            ON CONFLICT (daemon, before, last) DO UPDATE
                SET followers = excluded.followers, tick = excluded.tick,
                    writer = excluded.writer, revision = excluded.revision";
        let writer = revision.writer();
        let values = [
            (&daemon as _, Type::BYTEA),
            (&self.before as _, Type::TEXT_ARRAY),
            (&self.last as _, Type::TEXT_ARRAY),
            (&self.followers as _, Type::TEXT_ARRAY),
            (&self.ticks as _, Type::INT8_ARRAY),
            (&writer as _, Type::BYTEA),
            revision.number(),
        ];
        session.query(put, &values).await.map(drop)
    }
}
